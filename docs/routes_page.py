"""docs/reference/routes.md: who may call each route, and what bounds it, as the routes say (gateway/edge/bounds.py)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from tempfile import TemporaryDirectory

from fastapi.routing import APIRoute, RouteContext, iter_route_contexts

from gateway.app import create_app
from gateway.edge.bounds import bound_of, is_for_visitors, is_of_all_sites, scope_of
from schemas.access_key import Scope
from tests.fakes.ports import FakePorts
from wiring.settings import Settings

INTRODUCTION = """# Routes

Every route of a gateway, as it says itself who may call it and what keeps its callers from keeping all others waiting.
The tests call each of them as each kind of caller and hold the answers against this table. What each takes and answers:
[HTTP](http.md), a page that `make docs` writes, or `/openapi.json` of a gateway.

*Scope*: what a key needs ([keys](../howto/keys.md#scopes)); below `/console/` a session of such a key, or a user that a
proxy has signed in; *of all*: for all sites. Where the scope is `chat`, a visitor token does as well. Routes without a
scope are for anybody, or look at something else: `visitor-tokens` at the page's origin, `webhooks` at the signature,
`indexnow` at the key in its body or address, `websub` at the token in its address.
*Websites*: a page of an origin that the site names may call the route and read the answer (CORS).

| bound | by which |
| --- | --- |
| key, session | its holder is known by name, and can lose it |
| visitor | counted by token and by address (`visitor_rate`); programs with a key are not |
| address | counted by address |
| at once | so many at a time, of all and of one address |
| kept | computed at most once in a while, for all callers |
| memory | no server is asked, and nothing is worked out that takes longer than a refusal |

| route | scope | websites | bound |
| --- | --- | --- | --- |
"""
SITES = ("town", "demo")  # with the second there is the sample site


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    method: str
    path: str
    scope: Scope | None
    of_all: bool
    websites: bool
    bound: str


def page() -> str:
    return INTRODUCTION + "".join(
        f"| `{row.method} {row.path}` | {_scope(row)} | {'yes' if row.websites else ''} | {row.bound} |\n"
        for row in sorted(rows(), key=lambda row: (row.path, row.method))
    )


def rows() -> Iterator[Row]:
    """All routes of a gateway over fakes; nothing is started. Raises: ValueError: one does not say what bounds it."""
    with TemporaryDirectory() as home:
        secrets = {"admin_key": "unused" * 8, "token_secret": "unused" * 8}
        settings = Settings.model_validate({"home": home, "sites": {site: {} for site in SITES}} | secrets)
        app = create_app(settings, FakePorts().ports)
        for route in iter_route_contexts(app.routes):
            yield from _rows(route)


def _rows(route: RouteContext) -> Iterator[Row]:
    known = route.original_route
    bound = bound_of(known)
    if not isinstance(known, APIRoute) or bound is None:
        raise ValueError(f"{route.path}: the route does not say what bounds it (gateway/edge/bounds.py)")
    for method in known.methods or ():
        yield Row(method, known.path, scope_of(known), is_of_all_sites(known), is_for_visitors(known), bound)


def _scope(row: Row) -> str:
    return "" if row.scope is None else f"`{row.scope}`{' of all' if row.of_all else ''}"
