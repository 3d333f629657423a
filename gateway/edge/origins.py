"""Which other websites' pages may talk to us: those a site names, on its visitors' routes alone (CORS, Fetch standard).

Which routes these are, the routes say themselves (bounds.py). Where no site is in the path, as on OpenAI's routes, it
is the caller's: a preflight has no caller yet, so there any site may have named the origin.

Starlette's CORSMiddleware knows one list for all; ours differ per site.
"""

from __future__ import annotations

from collections.abc import Iterable

from fastapi.routing import iter_route_contexts
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.edge.auth import Caller
from gateway.edge.bounds import is_for_visitors
from wiring.settings import Settings

MCP_HEADERS = "MCP-Protocol-Version, MCP-Session-Id, Mcp-Method, Mcp-Name"
ALLOWED_HEADERS = f"Authorization, Content-Type, Last-Event-ID, traceparent, {MCP_HEADERS}"
PREFLIGHT_AGE = "600"  # seconds that a browser keeps the answer
EXPOSED = "X-Trace-Id, Retry-After"


class SiteOrigins:
    """Answers preflights, and marks answers that a foreign page may read."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope) if scope["type"] == "http" else Headers()
        origin = headers.get("origin")
        if origin is None:
            await self._app(scope, receive, send)
            return
        method = headers.get("access-control-request-method")
        if scope["method"] == "OPTIONS" and method is not None and self._may_ask(origin, {**scope, "method": method}):
            allowed = {
                "Access-Control-Allow-Origin": origin,
                "Access-Control-Allow-Methods": method,
                "Access-Control-Allow-Headers": ALLOWED_HEADERS,
                "Access-Control-Max-Age": PREFLIGHT_AGE,
                "Vary": "Origin, Access-Control-Request-Method",
            }
            await Response(status_code=204, headers=allowed)(scope, receive, send)
            return

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start" and self._may_read(origin, scope):
                headers = MutableHeaders(scope=message)
                headers["Access-Control-Allow-Origin"] = origin
                headers["Access-Control-Expose-Headers"] = EXPOSED
                headers.add_vary_header("Origin")
            await send(message)

        await self._app(scope, receive, marked)

    def _may_ask(self, origin: str, scope: Scope) -> bool:
        """Whether a page of this origin may send the request."""
        for route in iter_route_contexts(scope["app"].routes):
            match, found = route.matches(scope)
            if match == Match.FULL:
                return is_for_visitors(route.original_route) and self._named(origin, found["path_params"].get("site"))
        return False

    def _may_read(self, origin: str, scope: Scope) -> bool:
        """Whether a page of this origin may read the answer, once a route has taken the request."""
        if not is_for_visitors(scope.get("route")):
            return False
        caller: Caller | None = scope.get("state", {}).get("caller")
        return self._named(origin, scope["path_params"].get("site", caller and caller.site))

    def _named(self, origin: str, site: str | None) -> bool:
        """Whether the site names the origin; None: whether one of them does."""
        sites: Iterable[str] = self._settings.sites if site is None else (site,)
        return any(origin in self._settings.sites[each].origins for each in sites if each in self._settings.sites)
