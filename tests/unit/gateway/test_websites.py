"""What the chat on a site's own web pages calls, from the side of the browser: preflight, answer, and who may read it.

The calls are those that widget/src/client.ts makes, read out of it: whoever adds one there has it tried here.
"""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts

from gateway.chat import conversations
from gateway.edge.bounds import scope_of
from tests.edge import CHAT_ANYWHERE, PAGE_ORIGIN, STAFF_TOWN, assert_problem, bearer

WIDGET = Path(__file__).parents[3] / "widget" / "src"
CLIENT = (WIDGET / "client.ts").read_text("utf-8")
EVIL = "https://evil.example"
COMPLETIONS = "/v1/chat/completions"
NAMED = re.compile(r'const path = (`[^`]*`);|this\.#fetch\((?P<to>"[^"]*"|`[^`]*`|path)(?P<how>[^;]*);')
GET = re.compile(r"client\.get<\w+>\(`([^?`]*)")  # what the widget reads by the client's `get`
MINTED = "`${this.url}/visitor-tokens`, {"
Call = tuple[str, str]


def calls() -> list[Call]:
    """Each with its method and its path below the site's."""
    found: list[Call] = [("GET", path) for path in gets()]
    path = ""
    for each in NAMED.finditer(CLIENT):
        if each[1]:
            path = each[1]
            continue
        if each["to"] == "path" and not path:  # in `get`
            continue
        to = re.sub(r"\$\{of\([^}]*\}|\?.*", "", path if each["to"] == "path" else each["to"])
        method = re.search(r'method: "(\w+)"', each["how"])
        found.append((method[1] if method else "GET", re.sub(r"\$\{[^}]*\}", "abcdefgh", to).strip('"`')))
    return found


def gets() -> list[str]:
    return [path for file in sorted(WIDGET.glob("*.ts")) for path in GET.findall(file.read_text("utf-8"))]


def preflight(method: str, origin: str = PAGE_ORIGIN) -> dict[str, str]:
    return {
        "Origin": origin,
        "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": "authorization,content-type,last-event-id",
    }


def test_all_calls_of_the_widget_are_read() -> None:
    assert set(gets()) == {"search", "suggest", "next-questions"}
    assert len(calls()) == CLIENT.count("this.#fetch(") - 1 + len(gets())
    assert {("DELETE", "visitors/me"), ("PATCH", "conversations/abcdefgh"), ("GET", "conversations")} < set(calls())
    assert MINTED in CLIENT
    assert CLIENT.count(" fetch(") == 5  # in #fetch, of the first view, of tokens, and two that look why nothing came


@pytest.mark.parametrize(("method", "path"), sorted({*calls(), ("POST", "visitor-tokens")}))
async def test_a_page_that_the_site_names_makes_every_call_of_the_widget_and_no_other_page_does(
    app: FastAPI, stranger: httpx.AsyncClient, method: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversations, "LISTED_WITHIN", 0)
    url, elsewhere = f"/v1/sites/town/{path}", f"/v1/sites/other/{path}"
    allowed = await stranger.options(url, headers=preflight(method))
    assert (allowed.status_code, allowed.headers["access-control-allow-origin"]) == (204, PAGE_ORIGIN)
    assert method in allowed.headers["access-control-allow-methods"]
    assert {"Authorization", "Content-Type", "Last-Event-ID"} < set(
        allowed.headers["access-control-allow-headers"].split(", ")
    )
    assert "access-control-allow-credentials" not in allowed.headers
    # Also a refusal must be readable, or the page could not tell its visitor why.
    for token in (app.state.edge.tokens.issue("town").token, "nobody's"):
        answer = await stranger.request(method, url, headers=bearer(token) | {"Origin": PAGE_ORIGIN}, content=b"{}")
        assert answer.headers["access-control-allow-origin"] == PAGE_ORIGIN
        assert answer.headers["vary"] == "Origin"
    for place, origin in ((url, EVIL), (url, f"{PAGE_ORIGIN}:444"), (elsewhere, PAGE_ORIGIN)):
        refused = await stranger.options(place, headers=preflight(method, origin))
        assert "access-control-allow-origin" not in refused.headers
        token = app.state.edge.tokens.issue(place.split("/")[3]).token
        answer = await stranger.request(method, place, headers=bearer(token) | {"Origin": origin}, content=b"{}")
        # Who may not have a token may read that, and nothing else.
        readable = "*" if (answer.status_code, path) == (403, "visitor-tokens") else None
        assert answer.headers.get("access-control-allow-origin") == readable


async def test_all_is_deleted_from_a_page_of_the_site(
    app: FastAPI, stranger: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversations, "LISTED_WITHIN", 0)
    mine = bearer(app.state.edge.tokens.issue("town").token) | {"Origin": PAGE_ORIGIN}
    await stranger.post("/v1/sites/town/chat", headers=mine, json={"question": "When?"})
    assert any((await stranger.get("/v1/sites/town/conversations", headers=mine)).json().values())
    gone = await stranger.delete("/v1/sites/town/visitors/me", headers=mine)
    assert (gone.status_code, gone.headers["access-control-allow-origin"]) == (204, PAGE_ORIGIN)
    assert not any((await stranger.get("/v1/sites/town/conversations", headers=mine)).json().values())


KEYLESS = {
    ("GET", path) for path in ("pages", "pages/{page_id:page_id}", "llms.txt", "llms-full.txt", "welcome", "ask")
} | {("POST", path) for path in ("ask", "mcp", "visitor-tokens")}


async def test_no_route_but_those_of_visitors_can_be_called_from_a_page(
    app: FastAPI, stranger: httpx.AsyncClient
) -> None:
    for route in iter_route_contexts(app.routes):
        path = re.sub(r"\{site\}", "town", route.path or "")
        for method in route.methods or ():
            answer = await stranger.options(re.sub(r"\{[^}]*\}", "abcdefgh", path), headers=preflight(method))
            keyless = (method, path.removeprefix("/v1/sites/town/")) in KEYLESS
            visitors = scope_of(route.original_route) == "chat" or keyless
            assert (answer.status_code == 204) is visitors, path
            assert ("access-control-allow-origin" in answer.headers) is visitors


async def test_on_openais_routes_the_site_is_the_callers(app: FastAPI, stranger: httpx.AsyncClient) -> None:
    for origin, allowed in ((PAGE_ORIGIN, True), (EVIL, False)):
        asked = await stranger.options(COMPLETIONS, headers=preflight("POST", origin))
        assert (asked.status_code == 204) is allowed
    issue = app.state.edge.tokens.issue
    callers = {issue("town").token: True, STAFF_TOWN: True, CHAT_ANYWHERE: True, issue("other").token: False}
    for key, readable in callers.items():
        for method, path in (("POST", COMPLETIONS), ("GET", "/v1/models"), ("GET", "/v1/models/town")):
            answer = await stranger.request(method, path, headers=bearer(key) | {"Origin": PAGE_ORIGIN}, content=b"{}")
            assert (answer.headers.get("access-control-allow-origin") == PAGE_ORIGIN) is readable


async def test_a_page_with_a_wrong_site_may_read_that_it_is_wrong(stranger: httpx.AsyncClient) -> None:
    answer = await stranger.post("/v1/sites/nowhere/visitor-tokens", headers={"Origin": PAGE_ORIGIN})
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "town" not in assert_problem(answer, 404, "unknown-site")["detail"]
