"""Who may look, who may edit, who may do everything: on every route below /v1/admin, and on every screen."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute

from gateway.app import create_app
from gateway.console import console
from gateway.edge.auth import Caller
from gateway.fakes import FakePorts
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
    assert_problem,
    bearer,
    edge_settings,
)

SITE = "/v1/admin/sites/{site}"
OWN_RUNS = "/v1/admin/evaluations"  # of the key's site, where it has one
LETTER = "/v1/admin/dlq/{topic}/{partition}/{offset}"
# The scope that each route insists on. A new route has to be added here: somebody has to think about who may.
ROUTES: dict[tuple[str, str], Scope] = {
    ("get", f"{SITE}/questions"): "view",
    ("get", f"{SITE}/questions/{{request_id}}"): "view",
    ("get", f"{SITE}/questions/{{request_id}}/labels"): "view",
    ("put", f"{SITE}/questions/{{request_id}}/label"): "edit",
    ("put", f"{SITE}/questions/{{request_id}}/settlement"): "edit",
    ("get", f"{SITE}/labels"): "view",
    ("get", f"{SITE}/labels/agreement"): "view",
    ("get", f"{SITE}/labels/queue"): "edit",
    ("get", f"{SITE}/evaluations"): "view",
    ("post", f"{SITE}/evaluations"): "edit",
    ("get", f"{SITE}/evaluations/{{run}}"): "view",
    ("delete", f"{SITE}/evaluations/{{run}}"): "edit",
    ("get", OWN_RUNS): "view",
    ("post", OWN_RUNS): "edit",
    ("get", f"{OWN_RUNS}/{{run}}"): "view",
    ("delete", f"{OWN_RUNS}/{{run}}"): "edit",
    ("get", f"{SITE}/judge-agreement"): "view",
    ("delete", f"{SITE}/questions/{{request_id}}/conversation"): "admin",
    ("get", f"{SITE}/gaps"): "view",
    ("get", f"{SITE}/coverage"): "view",
    ("get", f"{SITE}/pages"): "view",
    ("get", f"{SITE}/privacy"): "view",
    ("put", f"{SITE}/privacy"): "admin",
    ("delete", f"{SITE}/privacy"): "admin",
    ("post", f"{SITE}/privacy/versions/{{version}}/restore"): "admin",
    ("get", f"{SITE}/texts"): "view",
    ("get", f"{SITE}/texts/{{kind}}/{{name}}"): "view",
    ("put", f"{SITE}/texts/{{kind}}/{{name}}"): "edit",
    ("delete", f"{SITE}/texts/{{kind}}/{{name}}"): "edit",
    ("post", f"{SITE}/texts/{{kind}}/{{name}}/versions/{{version}}/restore"): "edit",
    ("post", f"{SITE}/texts/{{kind}}/{{name}}/candidates"): "edit",
    ("post", f"{SITE}/texts/{{kind}}/{{name}}/rollback"): "edit",
    ("get", f"{SITE}/trials"): "edit",
    ("post", f"{SITE}/trials"): "edit",
    ("post", f"{SITE}/cases"): "edit",
    ("get", f"{SITE}/examples"): "view",
    ("post", f"{SITE}/examples"): "edit",
    ("post", f"{SITE}/examples:like"): "edit",
    ("delete", f"{SITE}/examples/{{example}}"): "edit",
    ("get", f"{SITE}/chat"): "view",
    ("put", f"{SITE}/chat"): "admin",
    ("get", f"{SITE}/audit"): "admin",
    ("post", f"{SITE}/audit"): "admin",
    ("get", f"{SITE}/rebuilds"): "admin",
    ("post", f"{SITE}/rebuilds"): "admin",
    ("post", f"{SITE}/rebuilds:rollback"): "admin",
    ("post", f"{SITE}/rebuilds:stop"): "admin",
    ("get", f"{SITE}/audit-run"): "admin",
    ("post", f"{SITE}/audit-run"): "admin",
    ("get", f"{SITE}/rebuilds/{{generation}}"): "admin",
    ("delete", f"{SITE}/rebuilds/{{generation}}"): "admin",
    ("post", f"{SITE}/rebuilds/{{generation}}/promote"): "admin",
    ("get", "/v1/admin/status"): "admin",
    ("get", "/v1/admin/keys"): "admin",
    ("post", "/v1/admin/keys"): "admin",
    ("delete", "/v1/admin/keys/{key}"): "admin",
    ("get", "/v1/admin/audit-log"): "admin",
    ("get", "/v1/admin/dlq"): "admin",
    ("post", "/v1/admin/dlq:redrive"): "admin",
    ("post", "/v1/admin/dlq:drop"): "admin",
    ("get", LETTER): "admin",
    ("delete", LETTER): "admin",
    ("post", f"{LETTER}/redrive"): "admin",
}
SCREEN_OF_LETTER = "/console/dlq/{topic}/{partition}/{offset}"
SCREENS: dict[tuple[str, str], Scope | None] = {  # None: for everybody
    ("GET", "/console"): None,
    ("GET", "/console/sign-in"): None,
    ("POST", "/console/sign-in"): None,
    ("POST", "/console/sign-out"): "view",
    ("GET", "/console/{path:path}"): "view",
    ("GET", "/console/"): "view",
    ("GET", "/console/questions"): "view",
    ("GET", "/console/questions/{request_id}"): "view",
    ("GET", "/console/labels"): "view",
    ("GET", "/console/labels/next"): "edit",
    ("GET", "/console/labels/{request_id}"): "view",
    ("POST", "/console/labels/{request_id}"): "edit",
    ("POST", "/console/labels/{request_id}/settle"): "edit",
    ("GET", "/console/evaluations"): "view",
    ("GET", "/console/evaluations/compare"): "view",
    ("GET", "/console/evaluations/judge"): "view",
    ("GET", "/console/evaluations/{run}"): "view",
    ("POST", "/console/evaluations/{run}/remove"): "edit",
    ("GET", "/console/gaps"): "view",
    ("GET", "/console/coverage"): "view",
    ("GET", "/console/page"): "view",
    ("GET", "/console/playground"): "edit",
    ("POST", "/console/playground"): "edit",
    ("POST", "/console/playground/example"): "edit",
    ("POST", "/console/case"): "edit",
    ("GET", "/console/examples"): "view",
    ("GET", "/console/examples/new"): "edit",
    ("POST", "/console/examples/new"): "edit",
    ("POST", "/console/examples/{example}/remove"): "edit",
    ("GET", "/console/texts"): "view",
    ("GET", "/console/texts/{kind}/{name}"): "view",
    ("POST", "/console/texts/{kind}/{name}"): "edit",
    ("POST", "/console/texts/{kind}/{name}/remove"): "edit",
    ("POST", "/console/texts/{kind}/{name}/versions/{version}/restore"): "edit",
    ("GET", "/console/indexes"): "admin",
    ("POST", "/console/indexes/rollback"): "admin",
    ("POST", "/console/indexes/{generation}/promote"): "admin",
    ("POST", "/console/indexes/{generation}/discard"): "admin",
    ("GET", "/console/dlq"): "admin",
    ("GET", SCREEN_OF_LETTER): "admin",
    ("POST", f"{SCREEN_OF_LETTER}/redrive"): "admin",
    ("GET", "/console/keys"): "admin",
    ("POST", "/console/keys"): "admin",
    ("GET", "/console/keys/{id}"): "admin",
    ("POST", "/console/keys/{id}/revoke"): "admin",
    ("GET", "/console/privacy"): "admin",
    ("POST", "/console/privacy"): "admin",
    ("POST", "/console/privacy/remove"): "admin",
    ("POST", "/console/privacy/versions/{version}/restore"): "admin",
    ("GET", "/console/sites"): "admin",
    ("POST", "/console/sites/chat/{to}"): "admin",
    ("POST", "/console/indexes/rebuild"): "admin",
    ("POST", "/console/indexes/stop"): "admin",
    ("GET", "/console/indexes/audit"): "admin",
    ("POST", "/console/indexes/audit"): "admin",
    ("POST", "/console/indexes/repair"): "admin",
    ("POST", "/console/questions/{request_id}/erase"): "admin",
    ("POST", SCREEN_OF_LETTER + "/edit"): "admin",
    ("GET", "/console/audit-log"): "admin",
}
OF_ALL_SITES = ("/console/dlq", "/console/keys", "/console/audit-log")
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
MAY: dict[Scope, set[Scope]] = {"view": {"view", "edit", "admin"}, "edit": {"edit", "admin"}, "admin": {"admin"}}
FILLED = {
    "to": "off",
    "kind": "contact",
    "name": "en",
    "version": "1",
    "request_id": "request-0001",
    "run": "0123456789abcdef",
    "example": "0123456789abcdef",
    "generation": "1",
    "topic": "cms.changes",
    "partition": "0",
    "offset": "1",
    "key": "nobody",
    "id": "0123456789ab",
    "path:path": "nowhere",
}


def filled(path: str, site: str = "town") -> str:
    return re.sub(r"\{([^}]+)\}", lambda found: (FILLED | {"site": site})[found[1]], path)


def welcome(key: str, scope: Scope, site: str | None) -> bool:
    scopes, own = HOLDERS[key]
    return bool(scopes & MAY[scope]) and own in (None, site)


def test_every_route_is_known_here_and_tells_its_scope(tmp_path: Path) -> None:
    document = create_app(edge_settings(tmp_path), FakePorts().ports).openapi()
    told = {
        (method, path): operation["security"][0]["HTTPBearer"]
        for path, item in document["paths"].items()
        if path.startswith("/v1/admin")
        for method, operation in item.items()
    }
    assert told == {route: [scope] for route, scope in ROUTES.items()}


@pytest.mark.parametrize("route", ROUTES, ids=" ".join)
async def test_a_route_opens_for_those_who_may_alone(stranger: httpx.AsyncClient, route: tuple[str, str]) -> None:
    method, path = route
    for site in ("town", "other") if "{site}" in path else (None,):
        assert_problem(await stranger.request(method, filled(path, site or "")), 401, "unauthorized")
        for key in HOLDERS:
            answer = await stranger.request(method, filled(path, site or ""), headers=bearer(key), content=b"{}")
            place = HOLDERS[key][1] if path.startswith(OWN_RUNS) else site
            if welcome(key, ROUTES[route], place):
                assert answer.status_code not in (401, 403), (key, site)
            else:
                assert_problem(answer, 403, "forbidden")


def test_every_screen_is_known_here() -> None:
    routers = [console.others, *(module.router for module in console.SCREENS)]
    found = {
        (method, route.path)
        for router in routers
        for route in router.routes
        if isinstance(route, APIRoute)
        for method in route.methods
    }
    assert found == set(SCREENS)


@pytest.mark.parametrize("screen", [one for one, scope in SCREENS.items() if scope], ids=" ".join)
async def test_a_screen_opens_for_those_who_may_alone(
    app: FastAPI, stranger: httpx.AsyncClient, screen: tuple[str, str]
) -> None:
    method, path = screen
    scope = SCREENS[screen]
    assert scope
    sessions = app.state.edge.sessions
    sited = scope == "view" and path not in ("/console/sign-out", "/console/{path:path}")
    for site in ("town", "other") if sited else (None,):
        for key, (scopes, own) in HOLDERS.items():
            cookie = sessions.begin(key)
            if not scopes & MAY["view"]:
                assert cookie is None
                continue
            assert cookie
            answer = await stranger.request(
                method,
                filled(path),
                params={"site": site} if site else {},
                data={"token": sessions.form_token(cookie), "sure": "yes"} if method == "POST" else None,
                headers={"Cookie": f"pagewire_console={cookie}", "Sec-Fetch-Site": "same-origin"},
            )
            # What is of no site is for everybody who has signed in, except what concerns all sites.
            place = site if sited else None if path.startswith(OF_ALL_SITES) else own
            assert (answer.status_code == 403) != welcome(key, scope, place), (key, site)


async def test_without_a_session_every_screen_asks_to_sign_in(stranger: httpx.AsyncClient) -> None:
    for (method, path), scope in SCREENS.items():
        if scope:
            answer = await stranger.request(method, filled(path))
            assert (answer.status_code, answer.headers["location"][:16]) == (303, "/console/sign-in"), path


async def test_who_does_not_operate_sees_no_door_to_what_is_closed(app: FastAPI, stranger: httpx.AsyncClient) -> None:
    for key, shown in ((ADMIN, True), (EVERYTHING_TOWN, False), (VIEW_ANYWHERE, False)):
        cookie = app.state.edge.sessions.begin(key)
        page = await stranger.get("/console/questions", headers={"Cookie": f"pagewire_console={cookie}"})
        for door in OF_ALL_SITES:
            assert (f'href="{door}"' in page.text) is shown, (key, door)


def test_scopes_that_programs_have_are_in_no_other() -> None:
    for scope, included in INCLUDED.items():
        assert not included & {"ingest", "chat", "admin"}, scope
    assert not Caller("x", frozenset({"admin"}), None).may("ingest")
    assert not Caller("x", frozenset({"view"}), None).operates
