"""The operators' MCP server, asked by the SDK's own client in both eras of the protocol, and by raw requests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import httpx2
import pytest
from fastapi import FastAPI
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitRequestFormParams, ElicitResult, Implementation

from gateway.edge.signed import GOOD_FOR, Confirmations
from gateway.mcp import route
from gateway.mcp.admin_server import TOOLS
from schemas.letters import DeadLetterDetail, DeadLetterSummary
from tests.edge import ADMIN, EVERYTHING_TOWN, PAGE_ORIGIN, STAFF_TOWN, VIEW_ANYWHERE, bearer
from tests.fakes.ports import EPOCH, FakePorts
from tests.unit.gateway.test_gateway_questions import logged, outcome
from tests.unit.gateway.test_mcp import CALL, HEADERS, text_of

URL = "/v1/admin/mcp"
Connect = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture(params=["legacy", "2026-07-28"])
def connect(request: pytest.FixtureRequest, app: FastAPI) -> Connect:
    """A client of each era. `says`: what its user makes of a form; None: it shows none."""

    @asynccontextmanager
    async def connected(says: ElicitResult | None = None, asked: list[str] | None = None) -> AsyncIterator[Client]:
        async def form(context: object, params: Any) -> ElicitResult:
            assert isinstance(params, ElicitRequestFormParams)
            assert says is not None
            if asked is not None:
                asked.append(params.message)
            return says

        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(
            transport=transport, base_url="http://gateway.test", headers=bearer(ADMIN)
        ) as http:
            remote = streamable_http_client(f"http://gateway.test{URL}", http_client=http)
            info = Implementation(name="ops-agent", version="1")
            shown = form if says is not None else None
            async with Client(remote, mode=request.param, client_info=info, elicitation_callback=shown) as client:
                yield client

    return connected


def bury(fakes: FakePorts, *numbers: int, stage: str = "embed") -> None:
    for number in numbers:
        letter = DeadLetterSummary(
            id=f"cms.changes/0/{number}", topic="cms.changes", state="open", stage=stage, code="bad-message",
            message="cannot be read", key=f"town:en:p{number}", site="town", lang="en", page_id=f"p{number}",
            attempts=1, first_failed_at=EPOCH, last_failed_at=EPOCH, size=3,
        )  # fmt: skip
        fakes.letters.kept[letter.id] = DeadLetterDetail(
            letter=letter, error_class=None, source_partition=0, source_offset=1, headers=(), value={"x": 1},
            text=None, problem=None, diff=None,
        )  # fmt: skip


async def test_an_agent_reads_what_the_routes_tell(connect: Connect, fakes: FakePorts) -> None:
    bury(fakes, 1, 2)
    async with fakes.ports.runs.run("town", "blog", "reconcile", "ops") as came:
        came.sent = 7
    await logged(fakes, 1, outcome(question="What does a dog cost?", became="refused", hits=()))
    async with connect() as client:
        listed = (await client.list_tools()).tools
        assert [tool.name for tool in listed] == list(TOOLS)
        assert {tool.name for tool in listed if not tool.annotations.read_only_hint} == {"reconcile", "redrive"}  # type: ignore[union-attr]

        async def told(tool: str, **arguments: Any) -> Any:
            result = await client.call_tool(tool, arguments)
            assert not result.is_error, text_of(result)
            return result.structured_content

        status = await told("status", site="town")
        assert status["connectors"][0]["sent"] == 7
        assert (await told("questions", site="town"))["questions"][0]["question"] == "What does a dog cost?"
        assert (await told("questions", site="town", outcome="answered"))["questions"] == []
        assert "groups" in await told("gaps", site="town")
        letters = await told("dead_letters", stage="embed", limit=1)
        assert (letters["total"], letters["letters"][0]["id"]) == (2, "cms.changes/0/2")
        assert (await told("dead_letter", id="cms.changes/0/1"))["value"] == {"x": 1}
        assert "unknown-page" in text_of(await client.call_tool("receipt", {"site": "town", "id": "nowhere"}))
        for tool in ("receipt", "gaps", "questions"):
            arguments = {"site": "nowhere"} | ({"id": "x"} if tool == "receipt" else {})
            assert text_of(await client.call_tool(tool, arguments)).startswith("unknown-site")


async def test_an_act_is_asked_for_twice(connect: Connect, fakes: FakePorts) -> None:
    bury(fakes, 1, 2)
    bury(fakes, 3, stage="index")
    async with connect() as client:

        async def call(**arguments: Any) -> Any:
            return (await client.call_tool("redrive", arguments)).structured_content

        first = await call(stage="embed")
        assert not first["done"]
        assert "2 dead letters" in first["text"]
        assert "cms.changes/0/2, cms.changes/0/1" in first["text"]
        assert fakes.letters.sent == []
        other = await call(stage="index", confirm=first["confirm"])  # confirmed was something else
        assert (other["done"], fakes.letters.sent) == (False, [])
        assert not (await call(stage="embed", confirm="9999999999.00"))["done"]
        bury(fakes, 4)  # it would be sent as well: that is another act
        more = await call(stage="embed", confirm=first["confirm"])
        assert (more["done"], "3 dead letters" in more["text"]) == (False, True)
        assert (await call(stage="embed", confirm=more["confirm"]))["done"]
        assert [id for id, _ in fakes.letters.sent] == [f"cms.changes/0/{n}" for n in (4, 2, 1)]
        one = await call(id="cms.changes/0/3")
        assert "cms.changes/0/3" in one["text"]
        assert (await call(id="cms.changes/0/3", confirm=one["confirm"]))["done"]
        assert "nothing to redrive" in (await call())["text"]
        both = await client.call_tool("redrive", {"id": "cms.changes/0/3", "stage": "index"})
        assert "either `id` or filters" in text_of(both)
        agent = "ops-agent" if client.protocol_version == "2026-07-28" else "python-httpx2/"
    acts = fakes.audit_log.kept
    assert [(act.action, act.who) for act in acts] == [("letters.redrive", "admin")] * 2
    assert all(act.client.startswith(agent) for act in acts)


async def test_a_reconcile_names_its_connector_and_is_noted(connect: Connect, fakes: FakePorts) -> None:
    fakes.reconciles.connectors["town"] = ("blog",)
    async with connect() as client:
        assert text_of(await client.call_tool("reconcile", {"site": "town", "connector": "no"})).startswith("no-source")
        order = {"site": "town", "connector": "blog"}
        first = (await client.call_tool("reconcile", order)).structured_content
        assert ("'blog'" in first["text"], fakes.reconciles.begun) == (True, [])
        again = await client.call_tool("reconcile", order | {"confirm": first["confirm"]})
        assert again.structured_content["done"]
    assert fakes.reconciles.begun == [("town", "blog", "admin")]
    [act] = fakes.audit_log.kept
    assert (act.action, act.site, act.target) == ("connectors.reconcile", "town", "blog")


@pytest.mark.parametrize(
    ("says", "done"),
    [
        (ElicitResult(action="accept", content={"confirm": True}), True),
        (ElicitResult(action="accept", content={"confirm": False}), False),
        (ElicitResult(action="accept", content={"confirm": "true"}), False),
        (ElicitResult(action="accept"), False),
        (ElicitResult(action="decline"), False),
        (ElicitResult(action="cancel"), False),
    ],
)
async def test_the_user_is_asked_where_the_client_can(
    connect: Connect, fakes: FakePorts, says: ElicitResult, done: bool
) -> None:
    bury(fakes, 1)
    asked: list[str] = []
    async with connect(says, asked) as client:
        result = await client.call_tool("redrive", {"stage": "embed"})
        if client.protocol_version != "2026-07-28":  # before, it takes a session to ask
            assert result.structured_content["confirm"]
            assert (asked, fakes.letters.sent) == ([], [])
            return
        assert len(asked) == 1
        assert "cms.changes/0/1" in asked[0]
        assert bool(fakes.letters.sent) == done
        assert result.is_error == (not done)
        assert done or text_of(result).startswith("not-confirmed")


async def test_what_comes_to_the_door(stranger: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[dict[str, str], int, int | None]] = [
        ({}, 401, -32600),
        (bearer("unknown"), 401, -32600),
        (bearer(STAFF_TOWN), 403, -32600),
        (bearer(VIEW_ANYWHERE), 403, -32600),
        (bearer(EVERYTHING_TOWN), 403, -32600),  # of one site
        (bearer(ADMIN) | {"Origin": PAGE_ORIGIN}, 403, -32600),  # a site's page is no operator's
        (bearer(ADMIN) | {"Origin": "http://gateway.test"}, 200, None),
        (bearer(ADMIN), 200, None),
    ]
    for headers, status, code in asked:
        answer = await stranger.post(URL, json=CALL, headers=HEADERS | headers)
        assert (answer.status_code, answer.json().get("error", {}).get("code")) == (status, code), answer.text
    assert (await stranger.get(URL)).status_code == 405
    monkeypatch.setattr(route, "find_spec", lambda _: None)
    missing = await stranger.post(URL, json=CALL, headers=HEADERS | bearer(ADMIN))
    assert (missing.status_code, missing.json()["error"]["data"]["code"]) == (501, "mcp-missing")


def test_a_token_is_for_one_caller_one_plan_and_some_minutes() -> None:
    from pydantic import SecretStr

    now = [datetime(2026, 5, 4, tzinfo=UTC)]
    made = Confirmations(SecretStr("a" * 40), lambda: now[0].timestamp())
    token = made.token("ops", "send 3")
    assert made.confirms(token, "ops", "send 3")
    assert not made.confirms(token, "other", "send 3")
    assert not made.confirms(token, "ops", "send 4")
    for wrong in ("", ".", "x.y", token[:-1], f"9{token}", "\ud800", "1" * 100):
        assert not made.confirms(wrong, "ops", "send 3")
    now[0] += timedelta(seconds=GOOD_FOR)
    assert not made.confirms(token, "ops", "send 3")
