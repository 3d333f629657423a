"""Agents from the outside, over connectors: assistants follow a watched folder, operators' agents read and act."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
import yaml
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from tests.acceptance.system import PAGEWIRE, Instance, eventually
from tests.acceptance.test_agents import text_of
from tests.engine_fixture import Servers

pytestmark = pytest.mark.engine

QUESTION = "How much is a ticket for the cable car?"
FARES = "---\ntitle: Cable car\n---\nA ticket for the cable car costs {} euros.\n"


@dataclass(frozen=True)
class Watched:
    instance: Instance
    url: str
    site: httpx.Client
    docs: Path


@pytest.fixture(scope="module")
def watched(engine: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    home = tmp_path_factory.mktemp("watched")
    docs = home / "docs"
    docs.mkdir()
    instance = Instance(home, engine, PAGEWIRE_VISITOR_RATE="10000/minute")
    site = {
        "languages": ["en"],
        "agents": ["pages", "mcp", "nlweb"],
        "connectors": {"docs": {"kind": "folder", "path": str(docs)}},
    }
    (home / "pagewire.yaml").write_text(yaml.safe_dump({"sites": {instance.site: site}}))
    with instance.started("up") as up, instance.client(up.url) as client:
        yield Watched(instance, up.url, client, docs)


def told(watched: Watched) -> dict[str, str]:
    """What each outlet for assistants says of the page, without a key."""
    site, url = watched.site, f"{watched.url}/v1/sites/{watched.instance.site}"

    async def by_mcp() -> dict[str, str]:
        async with (
            httpx2.AsyncClient(timeout=60) as http,
            Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
        ):
            return {
                "search": text_of(await client.call_tool("search", {"query": QUESTION})),
                "ask": text_of(await client.call_tool("ask", {"question": QUESTION})),
                "get_page": text_of(await client.call_tool("get_page", {"id": "fares"})),
                "resources": str([one.name for one in (await client.list_resources()).resources]),
            }

    order = {"query": QUESTION, "streaming": False}
    return asyncio.run(by_mcp()) | {
        "twin": site.get("/pages/fares.md").text,
        "llms.txt": site.get("/llms.txt").text,
        "llms-full.txt": site.get("/llms-full.txt").text,
        "nlweb list": site.post("/ask", json=order).text,
        "nlweb answer": site.post("/ask", json=order | {"mode": "generate"}).text,
    }


def receipt(watched: Watched) -> dict[str, Any]:
    answer = watched.site.get("/pages/fares/receipt", params={"lang": "en"})
    return answer.json() if answer.status_code == 200 else {}


NAMES = {"resources", "llms.txt"}  # outlets that name the page and show none of its text


def test_assistants_follow_a_watched_folder(watched: Watched) -> None:
    file = watched.docs / "fares.md"
    with watched.instance.started("watch", watched.instance.site, "docs"):
        file.write_text(FARES.format("seven"))
        eventually(lambda: receipt(watched).get("state") == "searchable")
        before = receipt(watched)["searchable_revision"]
        first = told(watched)
        assert {name for name, text in first.items() if "seven euros" in text} == set(first) - NAMES
        assert "fares" in first["resources"]
        assert "Cable car" in first["llms.txt"]
        file.write_text(FARES.format("eight"))
        eventually(lambda: (receipt(watched).get("searchable_revision") or 0) > before)
        second = told(watched)
        assert {name for name, text in second.items() if "eight euros" in text} == set(second) - NAMES
        assert not any("seven euros" in text for text in second.values())
        file.unlink()
        eventually(lambda: receipt(watched).get("state") == "deleted")
        gone = told(watched)
        assert not any("euros" in text or "Cable car" in text or "fares" in text for text in gone.values()), gone
        assert gone["get_page"].startswith("unknown-page")


@asynccontextmanager
async def operator(watched: Watched) -> AsyncIterator[Client]:
    stdio = StdioServerParameters(command=str(PAGEWIRE), args=["mcp", "--admin"], env=watched.instance.environment)
    async with Client(stdio) as client:
        yield client


async def until(ask: Callable[[], Awaitable[Any]], holds: Callable[[Any], bool]) -> Any:
    """Ask until the answer is as it should be."""
    async with asyncio.timeout(150):
        while not holds(said := await ask()):  # noqa: ASYNC110  # what is waited for happens in another process
            await asyncio.sleep(0.1)
    return said


def ended(runs: list[dict[str, Any]]) -> bool:
    return bool(runs) and runs[0]["what"] == "reconcile" and runs[0]["ended_at"] is not None and not runs[0]["code"]


async def test_an_operators_agent_reconciles_and_redrives(watched: Watched) -> None:
    site = watched.instance.site
    (watched.docs / "opening.md").write_text("---\ntitle: Opening\n---\nThe cable car opens at nine.\n")
    async with operator(watched) as client:

        async def call(tool: str, **arguments: Any) -> Any:
            result = await client.call_tool(tool, arguments)
            while "no_shard_available" in text_of(result):  # of an index that is being created
                await asyncio.sleep(0.5)
                result = await client.call_tool(tool, arguments)
            assert not result.is_error, text_of(result)
            return result.structured_content

        assert {stage["stage"] for stage in (await call("status"))["stages"]} >= {"chunk", "embed", "index"}
        first = await call("reconcile", site=site, connector="docs")
        assert not first["done"]
        assert (await call("reconcile", site=site, connector="docs", confirm=first["confirm"]))["done"]
        runs = await until(lambda: call("status", site=site), lambda told: ended(told["connectors"]))
        assert (runs["connectors"][0]["by"], runs["connectors"][0]["sent"]) == ("admin", 1)
        await until(lambda: call("receipt", site=site, id="opening"), lambda told: told["state"] == "searchable")
        assert (await call("dead_letters", site=site))["total"] == 0
        assert not (await call("redrive", site=site))["done"]
        asked = await asyncio.to_thread(watched.site.post, "/chat", json={"question": "When does it open?"})
        assert asked.status_code == 200
        await until(lambda: call("questions", site=site), lambda told: "When does it open?" in str(told))
    acts = watched.instance.run("audit-log", "--json")
    assert '"connectors.reconcile"' in acts.stdout, acts.stderr
    assert '"client"' in acts.stdout
    nothing = watched.instance.run("mcp")
    assert (nothing.returncode, "name a site, or give --admin" in nothing.stderr) == (2, True)
