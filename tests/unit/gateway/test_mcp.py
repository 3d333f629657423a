"""A site's MCP server, asked by the SDK's own client in both eras of the protocol, and by raw requests."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from fastapi import FastAPI
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    INVALID_PARAMS,
    PROTOCOL_VERSION_META_KEY,
    CallToolResult,
    Implementation,
    TextContent,
)
from mcp_types import UNSUPPORTED_PROTOCOL_VERSION as UNSUPPORTED

from gateway.app import create_app
from gateway.edge.metrics import MCP_CALLS
from gateway.edge.rates import ADDRESS_FACTOR, TIMES
from gateway.mcp.server import PassagesFound, ToolAnswer
from schemas.answer import Answered, Citation, Done
from schemas.http import IndexedChunk, IndexedPage, SearchHit
from schemas.keys import page_key
from schemas.query import Question, Source
from tests.edge import INGEST_TOWN, PAGE_ORIGIN, STAFF_TOWN, Wire, bearer, edge_settings, until
from tests.fakes.ports import FakePorts
from wiring.settings import ChatSettings, SiteSettings

URL = "/v1/sites/town/mcp"
HIT = SearchHit(
    page_id="fees", lang="en", title="Fees", url="/fees", field="content", ord=0, text="Ten euros.", score=1, revision=1
)
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
LATER = CALL | {"params": {"_meta": {PROTOCOL_VERSION_META_KEY: "2031-01-01", CLIENT_CAPABILITIES_META_KEY: {}}}}
HEADERS = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}

Connect = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture(params=["legacy", "2026-07-28"])
def connect(request: pytest.FixtureRequest, app: FastAPI) -> Connect:
    """A client of each era."""

    @asynccontextmanager
    async def connected(key: str = "", app: FastAPI = app) -> AsyncIterator[Client]:
        headers = bearer(key) if key else {}
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://gateway.test", headers=headers) as http:
            remote = streamable_http_client(f"http://gateway.test{URL}", http_client=http)
            info = Implementation(name="assistant", version="1")
            async with Client(remote, mode=request.param, client_info=info) as client:
                yield client

    return connected


def keep(fakes: FakePorts, id: str, text: str, groups: str = "") -> None:
    chunk = IndexedChunk(field="content", ord=0, text=text, title="Fees", url=f"https://www.town.example/{id}")
    key = page_key("town", "en", id)
    fakes.indexed.kept[key] = IndexedPage(chunks=(chunk,), total=1)
    if groups:
        fakes.indexed.groups[key] = frozenset({groups})


def cited(question: Question) -> list[Any]:
    """A script: an answer that cites a page."""
    source = Source(
        n=2, page_id="fees", lang="en", title="Fees", url="/fees", field="content", ord=0, text="Ten euros.", score=1,
        revision=1, cited=True,
    )  # fmt: skip
    text, citation = "It costs ten euros. Bring a photo.", Citation(n=2, start=0, end=19)
    return [Answered(text=text, citations=(citation,), sources=(source,), extractive=True), Done()]


def text_of(result: CallToolResult) -> str:
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text


async def test_the_result_of_a_tool_is_no_page(connect: Connect, fakes: FakePorts) -> None:
    def worked_out(question: Question) -> list[Any]:
        answer, done = cited(question)
        made = answer.sources[0].model_copy(update={"page_id": "get_fee", "title": "Fee", "url": "", "kind": "tool"})
        return [answer.model_copy(update={"sources": (made,)}), done]

    fakes.answers.script = worked_out
    async with connect() as client:
        assert text_of(await client.call_tool("ask", {"question": "What?"})).endswith("Sources:\n\n[2]: Fee")


async def test_an_assistant_searches_asks_and_reads(connect: Connect, fakes: FakePorts) -> None:
    named = HIT.model_copy(update={"field": "keywords", "text": "money"})
    fakes.search.found = [named, HIT, named.model_copy(update={"page_id": "bank", "url": ""})]
    fakes.answers.script = cited
    keep(fakes, "fees/2026", "Ten euros.")
    async with connect() as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["search", "ask", "get_page"]
        found = await client.call_tool("search", {"query": "fees"})
        passages = PassagesFound.model_validate(found.structured_content).passages
        assert [(one.id, one.text) for one in passages] == [("fees", "Ten euros."), ("bank", "money")]
        assert "[Fees](/fees) (id: fees, lang: en)" in text_of(found)
        assert "2. Fees (id: bank, lang: en)" in text_of(found)  # without an address
        answered = await client.call_tool("ask", {"question": "What does it cost?", "lang": "de"})
        answer = ToolAnswer.model_validate(answered.structured_content)
        assert (answer.answered, answer.answer) == (True, "It costs ten euros. [2] Bring a photo.")
        assert text_of(answered).endswith("Sources:\n\n[2]: [Fees](/fees) (id: fees, lang: en)")
        [question] = fakes.answers.asked
        assert (question.lang, question.via, question.groups) == ("de", "mcp", ())
        assert question.client.startswith("assistant" if client.protocol_version == "2026-07-28" else "python-httpx2/")
        assert question.logged_as is not None
        by = [{"id": "fees/2026"}, {"url": "https://www.town.example/fees/2026"}]
        pages = {text_of(await client.call_tool("get_page", one)) for one in by}
        [listed] = (await client.list_resources()).resources
        [template] = (await client.list_resource_templates()).resource_templates
        assert template.uri_template.format(lang="en", id="fees%2F2026") == listed.uri
        [resource] = (await client.read_resource(listed.uri)).contents
        assert pages == {resource.text}  # type: ignore[union-attr]
        assert pages.pop().endswith("\n\nTen euros.\n")


async def test_groups_are_those_of_the_key(connect: Connect, fakes: FakePorts) -> None:
    keep(fakes, "wages", "Secret.", groups="staff")
    async with connect() as client:
        assert (await client.call_tool("get_page", {"id": "wages"})).is_error
        assert (await client.list_resources()).resources == []
        with pytest.raises(MCPError):
            await client.read_resource("page:town:en:wages")
    async with connect(STAFF_TOWN) as client:
        assert "Secret." in text_of(await client.call_tool("get_page", {"id": "wages"}))
        await client.call_tool("search", {"query": "wages"})
        await client.call_tool("ask", {"question": "Wages?"})
    assert fakes.search.groups[-1] == fakes.answers.asked[-1].groups == ("staff", "board")


async def test_mistakes_are_said_in_the_protocols_shape(connect: Connect, fakes: FakePorts) -> None:
    wrong = [
        ("search", {"query": "  "}, "invalid: query"),
        ("search", {"query": "a" * 4_001}, "invalid: query"),
        ("ask", {}, "invalid: question"),
        ("get_page", {}, "exactly one of id and url"),
        ("get_page", {"id": "nowhere"}, "unknown-page"),
    ]
    before = MCP_CALLS.labels("get_page", "unknown-page")._value.get()
    async with connect() as client:
        for tool, arguments, said in wrong:
            result = await client.call_tool(tool, arguments)
            assert result.is_error, tool
            assert said in text_of(result)
        with pytest.raises(MCPError) as unknown:
            await client.call_tool("delete_all", {})
        assert unknown.value.code == INVALID_PARAMS
        for uri in ("page:other:fr:x", "file:///etc/passwd", "page:town:en:nowhere"):
            with pytest.raises(MCPError) as refused:
                await client.read_resource(uri)
            assert refused.value.code == INVALID_PARAMS
    assert MCP_CALLS.labels("get_page", "unknown-page")._value.get() == before + 1


async def test_the_limits_are_those_of_visitors_and_no_other_waits(
    connect: Connect, fakes: FakePorts, tmp_path: Path
) -> None:
    settings = edge_settings(tmp_path, visitor_rate="1/day")
    app = create_app(settings, fakes.ports)
    async with connect(app=app) as client:
        told = [await client.call_tool("search", {"query": "fees"}) for _ in range(ADDRESS_FACTOR + 1)]
        assert [one.is_error for one in told] == [False] * ADDRESS_FACTOR + [True]
        assert "too-many-requests" in text_of(told[-1])
        assert not (await client.call_tool("ask", {"question": "Fees?"})).is_error
    async with connect(STAFF_TOWN, app=app) as program:
        for _ in range(ADDRESS_FACTOR + 1):
            assert not (await program.call_tool("search", {"query": "fees"})).is_error
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway.test") as raw:
        for _ in range(TIMES["mcp"] * ADDRESS_FACTOR):
            refused = await raw.post(URL, json=CALL, headers=HEADERS)
    assert (refused.status_code, refused.json()["error"]["data"]["code"]) == (429, "too-many-requests")
    assert int(refused.headers["retry-after"]) > 0


async def test_a_chat_that_is_off_answers_no_assistant(connect: Connect, fakes: FakePorts, tmp_path: Path) -> None:
    town = SiteSettings(agents=frozenset({"mcp"}), chat=ChatSettings(enabled=False))
    app = create_app(edge_settings(tmp_path, sites={"town": town}), fakes.ports)
    async with connect(app=app) as client:
        assert "chat-off" in text_of(await client.call_tool("ask", {"question": "Fees?"}))
    assert fakes.answers.asked == []


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_an_assistant_that_hangs_up_stops_its_answer(app: FastAPI, fakes: FakePorts, version: str) -> None:
    fakes.answers.script = lambda question: [60.0, *cited(question)]
    meta = {PROTOCOL_VERSION_META_KEY: version, CLIENT_CAPABILITIES_META_KEY: {}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    call |= {"params": {"name": "ask", "arguments": {"question": "Fees?"}, "_meta": meta}}
    headers = HEADERS | {"MCP-Protocol-Version": version, "Mcp-Method": "tools/call", "Mcp-Name": "ask"}
    headers |= {"Content-Type": "application/json", "Host": "gateway.test"}
    async with Wire().call(app, "POST", URL, headers, json.dumps(call).encode()) as wire:
        await until(lambda: fakes.answers.following)
        wire.hang_up()
        await until(lambda: any(each.is_set() for each in fakes.answers.stopped.values()))
    assert fakes.answers.following == 0


async def test_what_comes_to_the_door(stranger: httpx.AsyncClient) -> None:
    asked: list[tuple[str, str, dict[str, str], Any, int, int | None]] = [
        ("POST", URL, {"MCP-Protocol-Version": "2031-01-01", "Mcp-Method": "tools/list"}, LATER, 400, UNSUPPORTED),
        ("POST", URL, {"Origin": "https://evil.example"}, CALL, 403, -32600),
        ("POST", URL, {"Origin": PAGE_ORIGIN}, CALL, 200, None),
        ("POST", URL, bearer("unknown"), CALL, 401, -32600),
        ("POST", URL, bearer(INGEST_TOWN), CALL, 403, -32600),
        ("POST", URL.replace("town", "other"), {}, CALL, 403, -32600),  # not switched on
        ("POST", URL.replace("town", "nowhere"), {}, CALL, 404, -32600),
        ("POST", URL, {}, [CALL], 400, INVALID_PARAMS),
        ("POST", URL, {}, "[" * 10_000, 400, -32700),
        ("GET", URL, {}, None, 405, -32600),
        ("DELETE", URL, {}, None, 405, -32600),
    ]
    for method, url, headers, body, status, code in asked:
        content = {"content": body} if isinstance(body, str) else {"json": body}
        more = {"Content-Type": "application/json"} if isinstance(body, str) else {}
        answer = await stranger.request(method, url, headers=HEADERS | headers | more, **content)  # type: ignore[arg-type]
        assert answer.status_code == status, (headers, answer.text)
        assert answer.json().get("error", {}).get("code") == code, answer.text
    large = await stranger.post(URL, json={**CALL, "x": "y" * 100_000}, headers=HEADERS)
    assert large.status_code == 413
