"""HTTP/1.1 and 1.0 as uvicorn speaks them, and nothing else on the same connection.

By h11, not by httptools, which uvicorn takes where it finds it: httptools drops the body of a request that offers an
upgrade, as Java's HttpClient does by default with `Upgrade: h2c`; it answers HTTP/1.0 with chunks; and it reads headers
without end.
"""

from __future__ import annotations

from uvicorn.protocols.http.h11_impl import H11Protocol


class PlainHttp(H11Protocol):
    """Passes over offers to speak something else, as any server may (RFC 9110, 7.8)."""

    def _should_upgrade(self) -> bool:
        return False
