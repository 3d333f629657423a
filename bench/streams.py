"""Many visitors read at once, through one gateway: what the way there adds between two tokens, and what it holds.

direct    N streams from the scripted model
gateway   N streams of chat answers: the same model behind the answer stage, the log and the gateway

Both are read by the same client in this process. The model begins all N together; gaps are between the arrivals of
two text events of one stream. What comes in one fetch has no gap: the bus joins tokens that wait.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from multiprocessing.connection import Connection
from time import perf_counter

import aiohttp
import httpx

from bench.report import percentile, report
from bench.scripted_model import MODEL, serving
from bench.servers import start
from bench.system import resident, system
from cli.up import System

SITE = "streams"
A_WORKER = 64  # answers that a worker is given here: at this pace they take it half a core
WARM_UP = 5  # streams
SAMPLE_EVERY = 0.25  # seconds between two looks at the gateway's memory
TIMEOUT = 300.0  # seconds for everything that is waited for


@dataclass(frozen=True)
class Run:
    """What the streams of one round were like."""

    gaps: list[list[float]]  # of each stream, milliseconds
    texts: list[str]

    def quantile(self, q: float) -> float:
        return percentile([gap for gaps in self.gaps for gap in gaps], q)

    @property
    def worst(self) -> float:
        """The p99 of the stream that had it worst."""
        return max(percentile(gaps, 99) for gaps in self.gaps)


def main(streams: int, tokens: int, interval: float) -> None:
    """Gaps in milliseconds, memory in KiB."""
    asyncio.run(_run(streams, tokens, interval))


async def _run(streams: int, tokens: int, interval: float) -> None:
    with serving(tokens, interval) as (model, order):
        os.environ |= {
            "PAGEWIRE_LLM_MODEL": MODEL,
            "OPENAI_BASE_URL": model,
            "OPENAI_API_KEY": "none",
            "PAGEWIRE_GATE": "false",  # every question reaches the model
            # The first wait for the last, whose sources are found after all others'.
            "PAGEWIRE_LLM_TIMEOUT": str(TIMEOUT),
            "PAGEWIRE_QUESTION_TIMEOUT": str(TIMEOUT),
        }
        async with system([SITE]) as (started, client), _workers(ceil(2 * streams / A_WORKER), client):
            await _save(client)
            gateway = next(child.pid for child in started.children if child.name == "gateway")
            assert gateway is not None
            await _through(started, client, order, WARM_UP)
            before = resident(gateway)
            direct = await _direct(model, order, streams)
            through, peak = await _watched(gateway, lambda: _through(started, client, order, streams))
    words = [f"Word{n}." for n in range(tokens)]
    assert all(text.split() == words for text in (*direct.texts, *through.texts)), "a stream was not whole"
    lines: list[tuple[object, ...]] = [
        (name, *(round(value, 1) for value in (run.quantile(50), run.quantile(99), run.worst)))
        for name, run in (("direct", direct), ("gateway", through))
    ]
    added = [round(float(str(b)) - float(str(a)), 1) for a, b in zip(lines[0][1:], lines[1][1:], strict=True)]
    lines.append(("added", *added))
    per_stream = (peak - before) / streams / 1024
    report(
        "streams",
        f"{streams} streams at once, {tokens} tokens each, one every {interval * 1000:.0f} ms",
        ("path", "gap p50 ms", "gap p99 ms", "p99 of the worst stream ms"),
        lines,
        gateway_mib_before=round(before / 2**20, 1),
        gateway_mib_peak=round(peak / 2**20, 1),
        kib_per_stream=round(per_stream, 1),
    )
    print(f"{per_stream:.0f} KiB of the gateway's memory per open stream")


@asynccontextmanager
async def _workers(count: int, client: httpx.AsyncClient) -> AsyncIterator[None]:
    """So many answer workers, `pagewire up`'s own among them.

    Twice what the streams need, for the keys do not spread evenly.
    """
    async with AsyncExitStack() as stack:
        for _ in range(count - 1):
            worker = await start("worker", "answer")
            stack.push_async_callback(worker.wait)
            stack.callback(worker.terminate)
        async with asyncio.timeout(TIMEOUT):
            while await _members(client) < count:  # noqa: ASYNC110  # nothing announces it
                await asyncio.sleep(0.5)
        yield


async def _members(client: httpx.AsyncClient) -> int:
    status = (await client.get("/admin/status")).raise_for_status().json()
    members: int = next(stage["members"] for stage in status["stages"] if stage["stage"] == "answer")
    return members


async def _save(client: httpx.AsyncClient) -> None:
    page = {"id": "card", "title": "Library card", "content": "<p>A library card costs 12 euros a year.</p>"}
    (await client.put(f"/sites/{SITE}/pages/card?wait=searchable&timeout=60", json=page)).raise_for_status()


async def _watched(pid: int, work: Callable[[], Awaitable[Run]]) -> tuple[Run, int]:
    """What `work` returns, and the most bytes that the process held meanwhile."""
    working = asyncio.ensure_future(work())
    peak = resident(pid)
    while not working.done():
        await asyncio.wait((working,), timeout=SAMPLE_EVERY)
        peak = max(peak, await asyncio.to_thread(resident, pid))
    return await working, peak


async def _through(started: System, client: httpx.AsyncClient, order: Connection, streams: int) -> Run:
    url = f"{started.url}/v1/sites/{SITE}/chat"
    headers = {"Accept": "text/event-stream", "Authorization": client.headers["authorization"]}
    bodies: list[dict[str, object]] = [
        {"question": f"What does a library card cost in the year {n}?"} for n in range(streams)
    ]

    def text(line: bytes) -> str | None:
        if not line.startswith(b'data: {"text":'):
            return None
        data = json.loads(line[6:])
        return str(data["text"]) if len(data) == 1 else None  # the whole answer begins alike

    return await _read(url, headers, bodies, text, order)


async def _direct(url: str, order: Connection, streams: int) -> Run:
    body: dict[str, object] = {
        "model": MODEL,
        "stream": True,
        "max_tokens": 800,
        "messages": [{"role": "user", "content": "?"}],
    }

    def text(line: bytes) -> str | None:
        if not line.startswith(b'data: {"id"'):
            return None
        found = json.loads(line[6:])["choices"][0]["delta"].get("content")
        return None if found is None else str(found)

    return await _read(f"{url}/chat/completions", {}, [body] * streams, text, order)


async def _read(
    url: str,
    headers: dict[str, str],
    bodies: list[dict[str, object]],
    text: Callable[[bytes], str | None],
    order: Connection,
) -> Run:
    """Read all at once. `text`: what a line of the stream adds to the answer, if it does."""
    order.send(len(bodies))
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=TIMEOUT)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, headers=headers) as session:

        async def one(body: dict[str, object]) -> tuple[list[float], str]:
            at: list[float] = []
            pieces: list[str] = []
            async with session.post(url, json=body) as response:
                response.raise_for_status()
                async for line in response.content:
                    if (piece := text(line)) is not None:
                        at.append(perf_counter() * 1000)
                        pieces.append(piece)
            return [b - a for a, b in pairwise(at)], "".join(pieces)

        results = await asyncio.gather(*map(one, bodies))
    return Run([gaps for gaps, _ in results], [text for _, text in results])
