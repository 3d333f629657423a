"""Access groups: whose questions and searches find which pages, and who may give a visitor what."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from pydantic import SecretStr, ValidationError

from gateway.app import create_app
from gateway.edge.rates import ADDRESS_FACTOR
from gateway.edge.tokens import Visitor, VisitorTokens
from tests.edge import (
    ADMIN,
    CHAT_ANYWHERE,
    EVERYTHING_TOWN,
    INGEST_TOWN,
    PAGE_ORIGIN,
    STAFF_TOWN,
    assert_problem,
    bearer,
    edge_settings,
)
from tests.fakes.ports import FakePorts
from wiring.settings import KeySettings

SITE = "/v1/sites/town"
TOKENS = f"{SITE}/visitor-tokens"


async def token(stranger: httpx.AsyncClient, key: str, *groups: str) -> str:
    """As a website's own server gets it: without an origin."""
    issued = await stranger.post(TOKENS, headers=bearer(key), json={"groups": groups})
    assert (issued.status_code, issued.headers["cache-control"]) == (200, "no-store"), issued.text
    return str(issued.json()["token"])


async def found_with(stranger: httpx.AsyncClient, fakes: FakePorts, bearer_value: str) -> set[tuple[str, ...]]:
    """The groups with which a search, a question, the same question again and a completion look for pages."""
    headers = bearer(bearer_value)
    fakes.answers.asked.clear()
    fakes.search.groups.clear()
    await stranger.get(f"{SITE}/search?q=wages", headers=headers)
    asked = await stranger.post(f"{SITE}/chat", json={"question": "Wages?"}, headers=headers)
    await stranger.post(f"{SITE}/conversations/{asked.json()['conversation_id']}/regenerate", headers=headers)
    order = {"model": "town", "messages": [{"role": "user", "content": "Wages?"}]}
    await stranger.post("/v1/chat/completions", json=order, headers=headers)
    assert (len(fakes.search.groups), len(fakes.answers.asked)) == (1, 3)
    return {*fakes.search.groups, *(question.groups for question in fakes.answers.asked)}


async def test_a_key_reads_with_its_groups_and_others_with_none(stranger: httpx.AsyncClient, fakes: FakePorts) -> None:
    assert await found_with(stranger, fakes, STAFF_TOWN) == {("staff", "board")}
    for key in (ADMIN, CHAT_ANYWHERE, EVERYTHING_TOWN):
        assert await found_with(stranger, fakes, key) == {()}


@pytest.mark.parametrize("groups", [(), ("staff",), ("board", "staff")])
async def test_a_visitor_reads_with_what_the_website_gave(
    stranger: httpx.AsyncClient, fakes: FakePorts, groups: tuple[str, ...]
) -> None:
    assert await found_with(stranger, fakes, await token(stranger, STAFF_TOWN, *groups)) == {groups}


async def test_a_pages_visitor_has_no_groups(stranger: httpx.AsyncClient, fakes: FakePorts) -> None:
    issued = await stranger.post(TOKENS, headers={"Origin": PAGE_ORIGIN})
    assert await found_with(stranger, fakes, issued.json()["token"]) == {()}


@pytest.mark.parametrize("key", [ADMIN, CHAT_ANYWHERE, EVERYTHING_TOWN, STAFF_TOWN])
async def test_a_websites_server_needs_neither_origin_nor_body(stranger: httpx.AsyncClient, key: str) -> None:
    issued = await stranger.post(TOKENS, headers=bearer(key))
    assert issued.status_code == 200
    found = await stranger.get(f"{SITE}/search?q=x", headers=bearer(issued.json()["token"]))
    assert found.status_code == 200


@pytest.mark.parametrize(
    ("headers", "groups"),
    [
        (bearer(STAFF_TOWN), ["mayor"]),
        (bearer(STAFF_TOWN), ["staff", "mayor"]),
        (bearer(STAFF_TOWN), ["Staff"]),
        (bearer(CHAT_ANYWHERE), ["staff"]),
        (bearer(ADMIN), ["staff"]),
        ({"Origin": PAGE_ORIGIN}, ["staff"]),
        ({"Origin": PAGE_ORIGIN} | bearer("no-key"), ["staff"]),
    ],
)
async def test_nobody_gives_groups_that_they_do_not_have(
    stranger: httpx.AsyncClient, headers: dict[str, str], groups: list[str]
) -> None:
    assert_problem(await stranger.post(TOKENS, headers=headers, json={"groups": groups}), 403, "forbidden")


async def test_a_websites_server_renews_the_groups_of_the_same_visitor(
    stranger: httpx.AsyncClient, app: FastAPI
) -> None:
    first = await token(stranger, STAFF_TOWN, "staff")
    order = {"groups": ["board"], "before": first}
    again = await stranger.post(TOKENS, headers=bearer(STAFF_TOWN), json=order)
    before, after = (app.state.edge.tokens.verify(it) for it in (first, again.json()["token"]))
    assert after == Visitor("town", before.visitor, ("board",))


async def test_a_visitor_gives_nothing_on(stranger: httpx.AsyncClient) -> None:
    mine = await token(stranger, STAFF_TOWN, "staff")
    order = {"groups": ["staff"]}
    assert_problem(await stranger.post(TOKENS, headers=bearer(mine), json=order), 403, "origin-not-allowed")
    headers = bearer(mine) | {"Origin": PAGE_ORIGIN}
    assert_problem(await stranger.post(TOKENS, headers=headers, json=order), 403, "forbidden")


async def test_a_key_gives_tokens_of_its_own_site_and_scope(stranger: httpx.AsyncClient) -> None:
    for path, headers in (
        ("/v1/sites/other/visitor-tokens", bearer(STAFF_TOWN)),
        (TOKENS, bearer(INGEST_TOWN)),
        (TOKENS, bearer(INGEST_TOWN) | {"Origin": PAGE_ORIGIN}),
    ):
        assert_problem(await stranger.post(path, headers=headers), 403, "forbidden")
    for headers in (bearer("no-key"), {"Authorization": f"Basic {STAFF_TOWN}"}):
        refused = assert_problem(await stranger.post(TOKENS, headers=headers), 403, "origin-not-allowed")
        assert "key" in refused["detail"]
    assert_problem(await stranger.post("/v1/sites/nowhere/visitor-tokens", headers=bearer(ADMIN)), 404, "unknown-site")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"staff", 400, "bad-json"),
        (b'{"groups": "staff"}', 422, "invalid"),
        (b'{"groups": [""]}', 422, "invalid"),
        (b'{"group": ["staff"]}', 422, "invalid"),
        (b" " * 20_000, 413, "too-large"),
    ],
)
async def test_a_body_that_does_not_fit_gets_no_token(
    stranger: httpx.AsyncClient, body: bytes, status: int, code: str
) -> None:
    assert_problem(await stranger.post(TOKENS, headers=bearer(STAFF_TOWN), content=body), status, code)


async def test_a_page_renews_the_visitor_and_not_the_groups(
    stranger: httpx.AsyncClient, app: FastAPI, fakes: FakePorts
) -> None:
    mine = await token(stranger, STAFF_TOWN, "staff")
    asked = await stranger.post(f"{SITE}/chat", json={"question": "Wages?"}, headers=bearer(mine))
    renewed = await stranger.post(TOKENS, headers=bearer(mine) | {"Origin": PAGE_ORIGIN})
    again = renewed.json()["token"]
    kept = await stranger.get(f"{SITE}/conversations/{asked.json()['conversation_id']}", headers=bearer(again))
    assert kept.status_code == 200
    assert await found_with(stranger, fakes, again) == {()}
    assert await found_with(stranger, fakes, mine) == {("staff",)}  # for as long as it lives


def test_groups_are_signed_and_end_with_their_token() -> None:
    def at(now: float) -> VisitorTokens:
        return VisitorTokens(SecretStr("s" * 32), ttl=60, renewable=1_000, clock=lambda: now)

    issued = at(1_000).issue("town", groups=("staff",)).token
    visitor = at(1_059).verify(issued)
    assert visitor is not None
    assert visitor.groups == ("staff",)
    assert at(1_060).verify(issued) is None
    assert at(1_100).verify(at(1_100).issue("town", issued).token) == Visitor("town", visitor.visitor)
    payload, plain = issued.split(".")[1], at(1_000).issue("town").token
    forged = ".".join([plain.split(".")[0], payload, plain.split(".")[2]])
    assert at(1_000).verify(forged) is None


async def test_a_websites_server_is_not_limited(tmp_path: Path, fakes: FakePorts) -> None:
    app = create_app(edge_settings(tmp_path, visitor_rate="1/day"), fakes.ports)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway.test") as client:
        for _ in range(ADDRESS_FACTOR + 2):
            assert (await client.post(TOKENS, headers=bearer(STAFF_TOWN))).status_code == 200


@pytest.mark.parametrize("groups", [[""], ["x" * 257], "staff"])
def test_a_group_without_a_name_fails_at_start(groups: Any) -> None:
    with pytest.raises(ValidationError, match="groups"):
        KeySettings.model_validate({"name": "k", "sha256": "0" * 64, "scopes": ["chat"], "groups": groups})
