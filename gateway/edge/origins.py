"""Which other websites' pages may talk to us: those a site names, on the chat's routes alone (CORS, Fetch standard).

Starlette's CORSMiddleware knows one list for all; ours differ per site.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wiring.settings import Settings

_CHAT_ROUTES = re.compile(
    r"/v1/sites/([^/]+)/(?:chat|search|visitor-tokens|visitors/me|answers/.+|conversations(?:/.+)?)"
)
ALLOWED = {
    "Access-Control-Allow-Methods": "GET, POST, PATCH, DELETE",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, Last-Event-ID, traceparent",
    "Access-Control-Max-Age": "600",
}
EXPOSED = "X-Trace-Id, Retry-After"


def is_same_origin(origin: str, host: str) -> bool:
    """Whether a page of our own host asks. The scheme is not compared: a proxy before us may speak TLS."""
    return bool(host) and urlsplit(origin).netloc == host


class SiteOrigins:
    """Answers preflights, and marks answers that a foreign page may read."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        origin = self._allowed(scope) if scope["type"] == "http" else None
        if origin is None:
            await self._app(scope, receive, send)
            return
        if scope["method"] == "OPTIONS":
            headers = {**ALLOWED, "Access-Control-Allow-Origin": origin, "Vary": "Origin"}
            await Response(status_code=204, headers=headers)(scope, receive, send)
            return

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["Access-Control-Allow-Origin"] = origin
                headers["Access-Control-Expose-Headers"] = EXPOSED
                headers.add_vary_header("Origin")
            await send(message)

        await self._app(scope, receive, marked)

    def _allowed(self, scope: Scope) -> str | None:
        """The caller's origin if the site of the path allows it."""
        origin = Headers(scope=scope).get("origin")
        match = _CHAT_ROUTES.fullmatch(scope["path"])
        site = self._settings.sites.get(match[1]) if match else None
        return origin if origin and site and origin in site.origins else None
