"""Who is really at the other end of a connection.

uvicorn's own middleware puts the address of `X-Forwarded-For` in the place of the connection's, for rates and logs.
Where a header is believed because of who sends it, that is the wrong address: it comes out of a header itself.

    connection ─▶ Peers (keeps the address) ─▶ ProxyHeadersMiddleware (replaces it) ─▶ app
"""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

PEER = "pagewire.peer"  # in the scope; a header cannot put anything there


class Peers:
    """Keeps the address. Must be outermost: inside of anything that rewrites `client` it would keep what is written."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = scope.get("client")
        if client:
            scope[PEER] = client[0]
        await self._app(scope, receive, send)


def peer_of(scope: Scope) -> str | None:
    """The address; None where nobody has kept it, and for a Unix socket, which has none."""
    return scope.get(PEER)
