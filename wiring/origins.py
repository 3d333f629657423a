"""Origins as browsers send them (https://html.spec.whatwg.org/#ascii-serialisation-of-an-origin), out of what people
write: `https://www.Example.org:443/` is `https://www.example.org`.
"""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator

PORTS = {"http": 80, "https": 443}  # which browsers leave out
SCHEME = re.compile(r"(?!file)[a-z][a-z0-9+.-]*://", re.IGNORECASE)  # of apps as well; a file's origin is `null`
HOST = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?|(?=[^:]*:)[0-9a-f:.]*")  # a name or IPv4; IPv6


def origin(written: str) -> str:
    """The origin, as it is compared.

    Raises:
        ValueError: it is none, or more than one; says what would do.
    """
    text = written.strip()
    if "*" in text:
        raise ValueError("origins are named one by one: there is no `*`")
    if not SCHEME.match(text):
        raise ValueError("must begin with https:// or http://")
    try:
        parts = urlsplit(text)
        host, port = _ascii(parts.hostname or ""), parts.port
    except ValueError:
        raise ValueError("is no address of a website") from None
    if not HOST.fullmatch(host) or parts.username is not None:
        raise ValueError("must be the scheme, the host, and the port where it is not the usual one")
    shown = f"[{host}]" if ":" in host else host
    found = f"{parts.scheme}://{shown}" + (f":{port}" if port not in (None, PORTS.get(parts.scheme)) else "")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError(f"has no path, for browsers send none: {found}")
    return found


def _ascii(host: str) -> str:
    """`münchen.de` is `xn--mnchen-3ya.de`. Raises: ValueError."""
    if host.isascii():
        return host
    import httpx  # which takes a while to load, and hardly anybody needs it here

    try:
        return httpx.URL(f"https://{host}").raw_host.decode()
    except httpx.InvalidURL as err:
        raise ValueError("no name of a host") from err


Origin = Annotated[str, AfterValidator(origin)]
