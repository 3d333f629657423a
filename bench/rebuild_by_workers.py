"""`rebuild --from changes --by workers` with one worker and with more, each with a simulated model of its own.

    synthetic pages ─▶ cms.changes ─▶ fill ─▶ rebuild.orders ─▶ worker 1 ─▶ model 1: one call at a time,
                                                             ─▶ worker 2 ─▶ model 2   so long for each text
                                                             ...

What is on the clock is the filling: read, ordered, cut, embedded, written, heard of. Workers are processes of their
own, new ones for each round, which have filled an index of another site before it begins; the index of the round before
is deleted.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from multiprocessing.connection import Connection
from time import perf_counter

from aiohttp import web
from rich.progress import track

from adapters.embedders.fake import FakeEmbedder
from adapters.kafka import KafkaSender
from adapters.kafka.sender import Outgoing
from bench.report import report
from bench.servers import servers
from bench.synthetic import AT_ONCE, LINGER_MS, change
from bench.system import home
from schemas.rebuild import Rebuild
from schemas.topics import CHANGES
from wiring.clients import Clients
from wiring.settings import Settings

SITE, WARM_SITE = "bench-workers", "bench-warm"
WARM = 16  # pages: workers that have just been started share out the partitions and look at their model
MODEL = "simulated"
DIMS = 64
PARAGRAPHS = 4  # of a page: with its title five chunks, and some twenty units
START_TIMEOUT = 240.0  # seconds
TARGET = 3.5  # times one worker, of four


def main(pages: int, workers: Sequence[int], milliseconds: float) -> None:
    """Pages a second by so many workers, and how many times one worker that is."""
    with _models(milliseconds / 1000) as url, home([SITE, WARM_SITE]) as settings:
        os.environ |= {"PAGEWIRE_EMBEDDER": f"openai:{MODEL}", "OPENAI_BASE_URL": f"{url}/0/v1", "OPENAI_API_KEY": "k"}
        named = {"embedder": f"openai:{MODEL}", "openai_base_url": f"{url}/0/v1"}
        asyncio.run(_run(settings.model_copy(update=named), url, pages, workers, milliseconds))


async def _run(settings: Settings, url: str, pages: int, workers: Sequence[int], milliseconds: float) -> None:
    lines: list[tuple[object, ...]] = []
    seconds: dict[int, float] = {}
    async with servers(settings) as configured, AsyncExitStack() as stack:
        await _send(configured, SITE, pages)
        await _send(configured, WARM_SITE, WARM)
        clients = await stack.enter_async_context(Clients(configured))
        for count in sorted({1, *workers}):
            async with _working(url, count):
                await _filled(clients, WARM_SITE)
                filled, seconds[count] = await _filled(clients, SITE)
            assert (filled.pages, filled.failures) == (pages, 0), filled
            rate = filled.pages / seconds[count]
            lines.append((count, round(seconds[count], 1), round(rate, 2), round(seconds[1] / seconds[count], 2)))
    columns = ("workers", "seconds", "pages/s", "times one")
    about = f"{pages:,} pages, {PARAGRAPHS + 1} chunks each; a model a worker, {milliseconds:g} ms a text"
    report("rebuild-by-workers", about, columns, lines, target_of_four=TARGET)


async def _send(settings: Settings, site: str, pages: int) -> None:
    async with KafkaSender(settings, linger_ms=LINGER_MS) as sender:
        for start in track(range(0, pages, AT_ONCE), description=f"sending {pages:,} pages"):
            changes = [change(site, number, PARAGRAPHS) for number in range(start, min(start + AT_ONCE, pages))]
            await sender.send_many([Outgoing(CHANGES, c.page_key, c) for c in changes])


async def _filled(clients: Clients, site: str) -> tuple[Rebuild, float]:
    async with clients.elastic.rebuilds.lease(site):
        rebuilder = await clients.rebuilder(site, by="workers")
        rebuild = await rebuilder.begin("changes", fresh=True)
        began = perf_counter()
        filled = await rebuilder.fill(rebuild)
        took = perf_counter() - began
        await rebuilder.discard(rebuild.generation)
    return filled, took


@asynccontextmanager
async def _working(url: str, count: int) -> AsyncIterator[None]:
    """So many workers, each of which has its own share of the partitions."""
    children = [await _start(f"{url}/{number}/v1") for number in range(1, count + 1)]
    try:
        async with asyncio.timeout(START_TIMEOUT):
            for child in children:
                assert child.stdout is not None
                while not (line := await child.stdout.readline()).startswith(b"ready"):
                    assert line, "a worker ended before it was ready"
        yield
    finally:
        for child in children:
            if child.returncode is None:
                child.terminate()
        await asyncio.gather(*(child.wait() for child in children))


async def _start(model: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "cli.main",
        "worker",
        "rebuild",
        "--lane",
        "bulk",
        env=os.environ | {"OPENAI_BASE_URL": model},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )


@contextmanager
def _models(seconds: float) -> Iterator[str]:
    """Where they are: `URL/NUMBER/v1`, one for each number, which speak OpenAI's format and make one call at a time."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_serve, args=(theirs, seconds), daemon=True)
    process.start()
    try:
        if not ours.poll(START_TIMEOUT):
            raise TimeoutError("the simulated models did not start")
        yield ours.recv()
    finally:
        process.terminate()
        process.join()


def _serve(parent: Connection, seconds: float) -> None:
    asyncio.run(_served(parent, seconds))


async def _served(parent: Connection, seconds: float) -> None:
    busy: dict[str, asyncio.Lock] = {}
    made = FakeEmbedder(DIMS)

    async def embed(request: web.Request) -> web.Response:
        asked = await request.json()
        texts = asked["input"]
        async with busy.setdefault(request.match_info["number"], asyncio.Lock()):
            await asyncio.sleep(seconds * len(texts))
        vectors = (await made.passages(texts)).round(4).tolist()
        made.embedded.clear()
        data = [{"object": "embedding", "index": n, "embedding": vector} for n, vector in enumerate(vectors)]
        usage = {"prompt_tokens": 0, "total_tokens": 0}
        return web.json_response({"object": "list", "data": data, "model": asked["model"], "usage": usage})

    app = web.Application(client_max_size=64 * 1024**2)
    app.router.add_post("/{number}/v1/embeddings", embed)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    [(host, port)] = [address[:2] for address in runner.addresses]
    parent.send(f"http://{host}:{port}")
    await asyncio.Event().wait()
