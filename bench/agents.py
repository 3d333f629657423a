"""What assistants wait for: tools over MCP beside HTTP's own routes, llms.txt of a large site, a save in all outlets.

search  tools/call search and GET /search, alternating; ask and POST /chat, the same
list    llms.txt and llms-full.txt of so many pages: the first byte, the whole, and the gateway's memory meanwhile
follow  a file of a watched folder is written ─▶ its Markdown and `get_page` say so; it is deleted ─▶ both are gone
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import httpx
import typer
from mcp_types import CLIENT_CAPABILITIES_META_KEY, PROTOCOL_VERSION_META_KEY
from rich.progress import track

from bench.report import library_page, percentile, report
from bench.servers import resident, start, system
from bench.synthetic import document
from schemas.http import BulkLine

SITE, LARGE = "bench-agents", "bench-list"
QUESTION = "What does a library card cost for adults in the year {n}?"
VERSION = "2026-07-28"
AT_ONCE = 500  # pages of an import's request
PATIENCE = 1_800.0  # seconds for the import
LOOK_EVERY = 0.02  # seconds
HEADERS = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": VERSION}


def main(
    rounds: Annotated[int, typer.Option(min=1, help="Calls of each kind.")] = 100,
    pages: Annotated[int, typer.Option(min=100, help="Pages of the site whose list is read.")] = 10_000,
    saves: Annotated[int, typer.Option(min=1, help="Files that are written and deleted.")] = 20,
) -> None:
    """Tools over MCP, llms.txt of a large site, and how soon a save is in all outlets."""
    with tempfile.TemporaryDirectory(prefix="pagewire-bench-docs-") as folder:
        asyncio.run(_run(Path(folder), rounds, pages, saves))


async def _run(docs: Path, rounds: int, pages: int, saves: int) -> None:
    site = {"agents": ["pages", "mcp"], "connectors": {"docs": {"kind": "folder", "path": str(docs)}}}
    async with system([SITE, LARGE], more=site) as (started, client):
        where = started.settings
        os.environ |= {"PAGEWIRE_KAFKA": where.kafka or "", "PAGEWIRE_ELASTICSEARCH": where.elasticsearch or ""}
        for n in range(20):
            url = f"/sites/{SITE}/pages/base{n}?wait=searchable&timeout=60"
            saved = await client.put(url, json=library_page(f"base{n}", n))
            assert saved.status_code == 200, saved.text
        lines = [*await _search(client, rounds), *await _ask(client, rounds), *await _follow(client, docs, saves)]
        columns = ("what", "p50 ms", "p95", "beside it p50", "p95", "added p50", "added p95")
        report("agents", f"tools and outlets, {rounds} calls, {saves} saves", columns, lines)
        gateway = next(child.pid or 0 for child in started.children if child.name == "gateway")
        lists = await _lists(client, gateway, pages)
    of_lists = ("list", "pages", "first byte ms", "whole s", "MB", "gateway grew by MiB")
    report("agents-lists", "lists of a large site", of_lists, lists)


async def _called(client: httpx.AsyncClient, tool: str, **arguments: Any) -> dict[str, Any]:
    """The result of a tool, without a session."""
    meta = {PROTOCOL_VERSION_META_KEY: VERSION, CLIENT_CAPABILITIES_META_KEY: {}}
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = HEADERS | {"Mcp-Method": "tools/call", "Mcp-Name": tool}
    answer = await client.post(f"/sites/{SITE}/mcp", json=call, headers=headers)
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json()["result"]
    return result


async def _search(client: httpx.AsyncClient, rounds: int) -> list[tuple[object, ...]]:
    async def mcp(n: int) -> None:
        found = await _called(client, "search", query=QUESTION.format(n=n))
        assert found["structuredContent"]["passages"], found

    async def http(n: int) -> None:
        found = await client.get(f"/sites/{SITE}/search", params={"q": QUESTION.format(n=n), "size": 8})
        assert found.json()["hits"], found.text

    return [await _compared("search by MCP, beside GET /search", rounds, mcp, http)]


async def _ask(client: httpx.AsyncClient, rounds: int) -> list[tuple[object, ...]]:
    async def mcp(n: int) -> None:
        told = await _called(client, "ask", question=QUESTION.format(n=n), lang="en")
        assert told["structuredContent"]["answer"], told

    async def http(n: int) -> None:
        told = await client.post(f"/sites/{SITE}/chat", json={"question": QUESTION.format(n=n), "lang": "en"})
        assert told.json()["answer"], told.text

    return [await _compared("ask by MCP, beside POST /chat", rounds, mcp, http)]


async def _compared(
    name: str, rounds: int, ours: Callable[[int], Awaitable[None]], beside: Callable[[int], Awaitable[None]]
) -> tuple[object, ...]:
    """Alternate, so that a busy moment of the machine hits both."""
    times: tuple[list[float], list[float]] = ([], [])
    for n in track(range(-5, rounds), description=name):
        for call, kept in zip((ours, beside), times, strict=True):
            began = perf_counter()
            await call(n % 20)
            if n >= 0:  # the first ones import modules and open connections
                kept.append((perf_counter() - began) * 1000)
    figures = [percentile(values, q) for values in times for q in (50, 95)]
    return (name, *(round(f, 1) for f in (*figures, figures[0] - figures[2], figures[1] - figures[3])))


async def _follow(client: httpx.AsyncClient, docs: Path, saves: int) -> list[tuple[object, ...]]:
    """From a file's write, or its deletion, until both outlets say so."""

    async def twin(name: str) -> str:
        return (await client.get(f"/sites/{SITE}/pages/{name}.md")).text

    async def tool(name: str) -> str:
        return str((await _called(client, "get_page", id=name))["content"])

    async def until(name: str, holds: Callable[[str], bool]) -> float:
        began = perf_counter()
        for outlet in (twin, tool):
            while not holds(await outlet(name)):  # noqa: ASYNC110  # it happens in another process
                await asyncio.sleep(LOOK_EVERY)
        return (perf_counter() - began) * 1000

    times: dict[str, list[float]] = {"new": [], "changed": [], "deleted": []}
    async with _watching():
        for n in track(range(-1, saves), description="saves"):  # the first one is not counted
            file = docs / f"page{n}.md"
            for kind, euros in (("new", "seven"), ("changed", "eight")):
                file.write_text(f"# Page {n}\n\nA ticket costs {euros} euros.\n")
                times[kind].append(await until(file.stem, lambda text, euros=euros: f"{euros} euros" in text))  # type: ignore[misc]
            file.unlink()
            times["deleted"].append(await until(file.stem, lambda text: "euros" not in text))
    name = "a file is {}: in Markdown and get_page"
    return [
        (name.format(kind), *(round(percentile(values[1:], q), 1) for q in (50, 95)), "", "", "", "")
        for kind, values in times.items()
    ]


@asynccontextmanager
async def _watching() -> AsyncIterator[None]:
    process = await start("watch", SITE, "docs")
    try:
        assert process.stdout is not None
        while not (line := await process.stdout.readline()).startswith(b"ready"):
            assert line, "the watch ended before it was ready"
        reading = asyncio.create_task(process.communicate())  # else its pipes fill
        yield
    finally:
        process.terminate()
        await reading


async def _lists(client: httpx.AsyncClient, gateway: int, pages: int) -> Sequence[tuple[object, ...]]:
    await _import(client, pages)
    lines: list[tuple[object, ...]] = []
    await _read(client, "llms.txt", gateway)  # which opens connections
    for name in ("llms.txt", "llms-full.txt"):
        first, whole, size, grew = await _read(client, name, gateway)
        lines.append((name, pages if name == "llms.txt" else 50, round(first, 1), whole, size / 1e6, grew / 2**20))
    return lines


async def _read(client: httpx.AsyncClient, name: str, gateway: int) -> tuple[float, float, int, int]:
    """Milliseconds to the first byte, seconds to the last, bytes, and the most by which the gateway grew meanwhile."""
    before, most, size, first = resident(gateway), 0, 0, 0.0
    began = perf_counter()
    async with client.stream("GET", f"/sites/{LARGE}/{name}") as answer:
        assert answer.status_code == 200
        async for piece in answer.aiter_bytes():
            first = first or (perf_counter() - began) * 1000
            size += len(piece)
            most = max(most, resident(gateway))
    return first, perf_counter() - began, size, max(0, most - before)


async def _import(client: httpx.AsyncClient, pages: int) -> None:
    for begin in track(range(0, pages, AT_ONCE), description=f"{pages:,} pages"):
        some = (document(n, 1) for n in range(begin, min(begin + AT_ONCE, pages)))
        body = "".join(BulkLine(page=page).model_dump_json(exclude_defaults=True) + "\n" for page in some)
        sent = await client.post(
            f"/sites/{LARGE}/pages:bulk", content=body, headers={"Content-Type": "application/x-ndjson"}
        )
        assert sent.status_code == 200, sent.text
        assert not sent.json()["rejected"], sent.text
    async with asyncio.timeout(PATIENCE):
        while await _searchable(client) < pages:  # noqa: ASYNC110  # it happens in another process
            await asyncio.sleep(1)


async def _searchable(client: httpx.AsyncClient) -> int:
    status = (await client.get("/admin/status", params={"site": LARGE})).json()
    return int(status["sites"][0]["pages"] or 0)
