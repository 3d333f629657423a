"""What agents send that they should not: too many calls at once, versions nobody knows, lists without end."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp_types import CLIENT_CAPABILITIES_META_KEY, PROTOCOL_VERSION_META_KEY
from mcp_types import UNSUPPORTED_PROTOCOL_VERSION as UNSUPPORTED

from gateway.app import create_app
from gateway.edge.rates import ADDRESS_FACTOR, TIMES
from tests.edge import ADMIN, bearer, edge_settings
from tests.fakes.ports import FakePorts

URL = "/v1/sites/town/mcp"
ADMIN_URL = "/v1/admin/mcp"
RATE = 2  # a minute
VERSION = "2026-07-28"
HEADERS = {"Accept": "application/json, text/event-stream"}


def call(method: str = "tools/list", version: str = VERSION, **params: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """A request without a session, and its headers."""
    meta = {PROTOCOL_VERSION_META_KEY: version, CLIENT_CAPABILITIES_META_KEY: {}}
    headers = HEADERS | {"MCP-Protocol-Version": version, "Mcp-Method": method}
    if "name" in params:
        headers["Mcp-Name"] = params["name"]
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params | {"_meta": meta}}, headers


async def test_fifty_calls_at_once_are_refused_in_the_protocols_shape_and_nobody_else_waits(
    tmp_path: Path, fakes: FakePorts
) -> None:
    app = create_app(edge_settings(tmp_path, visitor_rate=f"{RATE}/day"), fakes.ports)
    body, headers = call("tools/call", name="search", arguments={"query": "fees"})

    def at(address: str) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            transport=httpx.ASGITransport(app, client=(address, 1)), base_url="http://gateway.test", headers=headers
        )

    async with at("192.0.2.1") as agent, at("192.0.2.2") as other:
        flood = [asyncio.create_task(agent.post(URL, json=body)) for _ in range(50)]
        beside = await asyncio.wait_for(other.post(URL, json=body), 5)
        answers = [(await each).json()["result"] for each in flood]
        assert not beside.json()["result"].get("isError")
        refused = [one for one in answers if one.get("isError")]
        assert len(refused) == 50 - RATE * ADDRESS_FACTOR
        assert {one["content"][0]["text"].split(":")[0] for one in refused} == {"too-many-requests"}
        assert len(fakes.search.searches) == RATE * ADDRESS_FACTOR + 1  # what is refused is not searched for
        doors = [await agent.post(URL, json=body) for _ in range(RATE * TIMES["mcp"] * ADDRESS_FACTOR - 49)]
        assert (doors[-1].status_code, doors[-1].json()["error"]["data"]["code"]) == (429, "too-many-requests")
        assert int(doors[-1].headers["retry-after"]) > 0
        asked = {"query": "fees", "streaming": False}
        nlweb = await asyncio.gather(*(agent.post("/v1/sites/town/ask", json=asked) for _ in range(50)))
        assert {one.status_code for one in nlweb} == {429}  # it has used up its searches
        assert (await other.post("/v1/sites/town/ask", json=asked)).status_code == 200


@pytest.mark.parametrize("url", [URL, ADMIN_URL])
@pytest.mark.parametrize("version", ["2031-01-01", "1", "", "nonsense", "9" * 1_000, "2026-07-28 ", "../etc"])
async def test_a_version_that_nobody_knows_is_named(stranger: httpx.AsyncClient, url: str, version: str) -> None:
    body, headers = call(version=version)
    answer = await stranger.post(url, json=body, headers=headers | bearer(ADMIN))
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert error["code"] in (UNSUPPORTED, -32600, -32602, -32020), answer.text
    if version == "2031-01-01":
        assert VERSION in error["data"]["supported"]


@pytest.mark.parametrize("url", [URL, ADMIN_URL])
@pytest.mark.parametrize(
    "params",
    [
        {"name": "search", "arguments": {"query": ["x"] * 5_000}},
        {"name": "redrive", "arguments": {"id": "x" * 5_000, "confirm": "y" * 5_000}},
        {"name": "get_page", "arguments": {"url": "\ud800"}},
        {"name": "\x00" * 100, "arguments": {}},
        {"name": "search", "arguments": "x"},
        {"name": 7},
        {"name": "status", "arguments": {"site": "../x"}},
        {"name": "questions", "arguments": {"site": "town", "after": "\x00" * 500}},
    ],
    ids=range(8),
)
async def test_wrong_arguments_are_an_answer_and_no_failure(
    stranger: httpx.AsyncClient, url: str, params: dict[str, Any]
) -> None:
    body, headers = call("tools/call", **params)
    headers = {name: value for name, value in headers.items() if name != "Mcp-Name"} | bearer(ADMIN)
    name = str(params["name"])
    if name.isascii() and name.isprintable():
        headers["Mcp-Name"] = name
    answer = await stranger.post(url, content=json.dumps(body).encode(), headers=headers | JSON)
    assert answer.status_code in (200, 400, 404), answer.text
    told = answer.json()
    assert "error" in told or told["result"]["isError"], told
    assert told.get("error", {}).get("code") != -32603, told  # nothing that nobody foresaw


JSON = {"Content-Type": "application/json"}
