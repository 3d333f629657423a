"""What a route says of itself: who may call it, and what keeps its callers from keeping all others waiting.

Both are said by what a route depends on, or on its function. CORS (origins.py), the table in docs/reference/routes.md
and the tests read it there, so that no list of routes has to be kept by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeVar

from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from schemas.access_key import Scope

# key      its holder is known by name, and can lose it
# session  of the console: a key, or a user that a proxy knows
# visitor  counted by token and by address (rates.py); programs with a key are not
# address  counted by address
# at once  so many at a time (at_once.py)
# kept     worked out at most once in a while for all callers (at_once.py)
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
