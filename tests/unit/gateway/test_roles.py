"""Who may call which route: each route of docs/reference/routes.md, as each kind of caller.

That page is written from what the routes say of themselves. Whoever gives a route another scope changes a line of it,
which somebody reads; a route that is not there fails `make check`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from gateway.chat import conversations
from gateway.edge.auth import Caller
from schemas.access_key import INCLUDED, Scope
from tests.edge import (
    ADMIN,
    CHAT_ANYWHERE,
    EDIT_TOWN,
    EVERYTHING_TOWN,
    INGEST_TOWN,
    STAFF_TOWN,
    VIEW_ANYWHERE,
    VIEW_TOWN,
    bearer,
)

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "routes.md"
LINE = re.compile(r"^\| `(?P<method>[A-Z]+) (?P<path>[^`]+)` \| (?:`(?P<scope>\w+)`(?P<of_all> of all)?)? \|", re.M)


@dataclass(frozen=True)
class Route:
    """A line of the page."""

    method: str
    path: str
    scope: Scope | None
    of_all: str | None

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


ROUTES = [Route(**found.groupdict()) for found in LINE.finditer(PAGE.read_text("utf-8"))]  # type: ignore[arg-type]
API = [route for route in ROUTES if route.path.startswith("/v1/") and route.scope]
SCREENS = [route for route in ROUTES if route.path.startswith("/console") and route.scope]
HOLDERS: dict[str, tuple[set[Scope], str | None]] = {
    ADMIN: ({"ingest", "chat", "admin"}, None),
    EVERYTHING_TOWN: ({"ingest", "chat", "admin"}, "town"),
    EDIT_TOWN: ({"edit"}, "town"),
    VIEW_TOWN: ({"view"}, "town"),
    VIEW_ANYWHERE: ({"view"}, None),
    INGEST_TOWN: ({"ingest"}, "town"),
    CHAT_ANYWHERE: ({"chat"}, None),
    STAFF_TOWN: ({"chat"}, "town"),
}
MAY: dict[Scope, set[Scope]] = {
    "view": {"view", "edit", "admin"},
    "edit": {"edit", "admin"},
    "admin": {"admin"},
    "chat": {"chat"},
    "ingest": {"ingest"},
}
VISITORS = ("town", "other")
FILLED = {
    "to": "off",
    "connector": "blog",
    "kind": "contact",
    "name": "en",
    "version": "1",
    "request_id": "request-0001",
    "reference": "ABCD-1234",
    "run": "0123456789abcdef",
    "example": "0123456789abcdef",
    "correction": "0123456789ab",
    "generation": "1",
    "topic": "cms.changes",
    "partition": "0",
    "offset": "1",
    "key": "nobody",
    "id": "0123456789ab",
    "path:path": "nowhere",
    "page_id:page_id": "fees",
    "conversation_id": "conversation-0001",
    "model:path": "town",
}


def filled(path: str, site: str = "town") -> str:
    return re.sub(r"\{([^}]+)\}", lambda found: (FILLED | {"site": site})[found[1]], path)


def test_the_page_has_them_all() -> None:
    assert (len(API), len(SCREENS)) == (len({str(route) for route in API}), len({str(route) for route in SCREENS}))
    assert {route.scope for route in API} == set(MAY)
    assert len(API) > 70
    assert len(SCREENS) > 40


@pytest.mark.parametrize("route", API, ids=str)
async def test_a_route_opens_for_those_who_may_alone(
    app: FastAPI, stranger: httpx.AsyncClient, route: Route, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversations, "LISTED_WITHIN", 0)
    assert route.scope
    visitors = {app.state.edge.tokens.issue(site).token: ({"chat"}, site) for site in VISITORS}
    for site in ("town", "other") if "{site}" in route.path else (None,):

        async def ask(key: str, site: str | None = site) -> httpx.Response:
            path = filled(route.path, site or "")
            return await stranger.request(route.method, path, headers=bearer(key) if key else {}, content=b"{}")

        assert (await ask("")).status_code == 401
        for key, (scopes, own) in (HOLDERS | visitors).items():
            wanted = site if site or route.of_all else own
            welcome = bool(scopes & MAY[route.scope]) and own in (None, wanted)
            answer = await ask(key)
            if not welcome:
                assert 'error="insufficient_scope"' in answer.headers["www-authenticate"], (key, site)
            elif route.path.endswith("/visitors/me"):  # a program's key has the conversations of all who ask through it
                welcome = key in visitors
            assert (answer.status_code not in (401, 403)) is welcome, (key, site)


@pytest.mark.parametrize("screen", SCREENS, ids=str)
async def test_a_screen_opens_for_those_who_may_alone(app: FastAPI, stranger: httpx.AsyncClient, screen: Route) -> None:
    scope = screen.scope
    assert scope
    sessions = app.state.edge.sessions
    sited = scope == "view" and screen.path not in ("/console/sign-out", "/console/{path:path}")
    for site in ("town", "other") if sited else (None,):
        for key, (scopes, own) in HOLDERS.items():
            cookie = sessions.begin(key)
            if not scopes & MAY["view"]:
                assert cookie is None
                continue
            assert cookie
            answer = await stranger.request(
                screen.method,
                filled(screen.path),
                params={"site": site} if site else {},
                data={"token": sessions.form_token(cookie), "sure": "yes"} if screen.method == "POST" else None,
                headers={"Cookie": f"pagewire_console={cookie}", "Sec-Fetch-Site": "same-origin"},
            )
            # What is of no site is for everybody who has signed in, except what concerns all sites.
            place = site if sited else None if screen.of_all else own
            welcome = bool(scopes & MAY[scope]) and own in (None, place)
            assert (answer.status_code != 403) is welcome, (key, site)


async def test_without_a_session_every_screen_asks_to_sign_in(stranger: httpx.AsyncClient) -> None:
    for screen in SCREENS:
        answer = await stranger.request(screen.method, filled(screen.path))
        assert (answer.status_code, answer.headers["location"][:16]) == (303, "/console/sign-in"), screen


async def test_who_does_not_operate_sees_no_door_to_what_is_closed(app: FastAPI, stranger: httpx.AsyncClient) -> None:
    for key, shown in ((ADMIN, True), (EVERYTHING_TOWN, False), (VIEW_ANYWHERE, False)):
        cookie = app.state.edge.sessions.begin(key)
        page = await stranger.get("/console/questions", headers={"Cookie": f"pagewire_console={cookie}"})
        for door in ("/console/dlq", "/console/keys", "/console/audit-log"):
            assert (f'href="{door}"' in page.text) is shown, (key, door)


def test_scopes_that_programs_have_are_in_no_other() -> None:
    for scope, included in INCLUDED.items():
        assert not included & {"ingest", "chat", "admin"}, scope
    assert not Caller("x", frozenset({"admin"}), None).may("ingest")
    assert not Caller("x", frozenset({"view"}), None).operates
