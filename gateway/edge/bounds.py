"""What a route says of itself: who may call it, and what keeps its callers from keeping all others waiting.

Both are said by what a route depends on, or on its function. CORS (SiteOrigins), the table in docs/reference/routes.md
and the tests read it there, so that no list of routes has to be kept by hand.

Where no site is in the path, as on OpenAI's routes, it is the caller's: a preflight has no caller yet, so there any
site may have named the origin. Starlette's CORSMiddleware knows one list for all; ours differ per site.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, TypeVar

from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, iter_route_contexts
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as AsgiScope

from gateway.edge.auth import Caller
from schemas.access_key import Scope
from wiring.settings import Settings

# key      its holder is known by name, and can lose it
# session  of the console: a key, or a user that a proxy knows
# visitor  counted by token and by address (rates.py); programs with a key are not
# address  counted by address
# at once  so many at a time (rates.py)
# kept     worked out at most once in a while for all callers (rates.py)
# memory   no server is asked, and nothing is worked out that takes longer than a refusal
Bound = Literal["key", "session", "visitor", "address", "at once", "kept", "memory"]
F = TypeVar("F", bound=Callable[..., Any])


def bounded(
    by: Bound, scope: Scope | None = None, *, of_all: bool = False, visitors: bool | None = None
) -> Callable[[F], F]:
    """Mark a route's function, or a dependency. `scope`: that it insists on, where `of_all` says so for all sites.
    `visitors`: a chat on a site's own web pages calls it.
    """

    def marked(function: F) -> F:
        vars(function).update(bound=by, scope=scope, of_all=of_all, visitors=visitors)
        return function

    return marked


def bound_of(route: BaseRoute) -> Bound | None:
    """What bounds the route; None: it does not say."""
    bound: Bound | None = _first(route, "bound")
    return bound


def scope_of(route: BaseRoute) -> Scope | None:
    """The scope that it insists on; None: no key is needed."""
    scope: Scope | None = _first(route, "scope")
    return scope


def is_of_all_sites(route: APIRoute) -> bool:
    """Whether a key of one site is not enough, whichever it is."""
    return "{site}" not in route.path and bool(_first(route, "of_all"))


def is_for_visitors(route: BaseRoute | None) -> bool:
    """Whether a chat on a site's own web pages calls it."""
    return bool(_first(route, "visitors"))


def _first(route: BaseRoute | None, name: str) -> Any:
    said = (getattr(each, name, None) for each in _parts(route))
    return next((value for value in said if value is not None), None)


def _parts(route: BaseRoute | None) -> Iterator[object]:
    if isinstance(route, APIRoute):
        yield route.endpoint
        yield from _calls(route.dependant)


def _calls(dependant: Dependant) -> Iterator[object]:
    for each in dependant.dependencies:
        yield each.call
        yield from _calls(each)


MCP_HEADERS = "MCP-Protocol-Version, MCP-Session-Id, Mcp-Method, Mcp-Name"
ALLOWED_HEADERS = f"Authorization, Content-Type, Last-Event-ID, traceparent, {MCP_HEADERS}"
PREFLIGHT_AGE = "600"  # seconds that a browser keeps the answer
EXPOSED = "X-Trace-Id, Retry-After"


class SiteOrigins:
    """Answers preflights, and marks answers that a foreign page may read."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
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

    def _may_ask(self, origin: str, scope: AsgiScope) -> bool:
        """Whether a page of this origin may send the request."""
        for route in iter_route_contexts(scope["app"].routes):
            match, found = route.matches(scope)
            if match == Match.FULL:
                return is_for_visitors(route.original_route) and self._named(origin, found["path_params"].get("site"))
        return False

    def _may_read(self, origin: str, scope: AsgiScope) -> bool:
        """Whether a page of this origin may read the answer, once a route has taken the request."""
        if not is_for_visitors(scope.get("route")):
            return False
        caller: Caller | None = scope.get("state", {}).get("caller")
        return self._named(origin, scope["path_params"].get("site", caller and caller.site))

    def _named(self, origin: str, site: str | None) -> bool:
        """Whether the site names the origin; None: whether one of them does."""
        sites: Iterable[str] = self._settings.sites if site is None else (site,)
        return any(origin in self._settings.sites[each].origins for each in sites if each in self._settings.sites)
