"""One site's import beside another's: how long do 20 pages of a small site take beside a large one, over alone?

    alone:  20 pages of one site ─▶ cms.changes, bulk lane ─▶ until all are searchable
    beside: many pages of a large site, which are being embedded, then 20 of a small one ─▶ until those are searchable,
            and again with as many pages more of the large site and another small one

One worker of the bulk lane, with a simulated model that makes one call at a time, so long for each text. Whatever waits
in the log before the small site's pages is the large one's; the ratio says how much of it they waited for.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
from collections.abc import Collection, Iterator
from contextlib import AsyncExitStack, contextmanager
from multiprocessing.connection import Connection
from time import perf_counter, time
from typing import Annotated

import typer
from aiohttp import web
from more_itertools import chunked
from rich.progress import track

from adapters.elastic.bundle import Elastic
from adapters.kafka import KafkaSender
from adapters.kafka.sender import Outgoing
from bench.report import report
from bench.servers import home, servers, worker
from bench.synthetic import LINGER_MS, change
from schemas.topics import CHANGES
from tests.fakes.embedder import FakeEmbedder
from wiring.settings import Settings

LARGE, WARM = "bench-large", "bench-warm"
PAGES = 20  # of a small site
PARAGRAPHS = 4  # of a page: with its title five chunks, and some twenty units
AT_ONCE = 200  # pages sent together
BEGUN = 40  # pages of the large site that are searchable before the small one comes
LOOK_EVERY = 0.1  # seconds
PATIENCE = 1_800.0  # seconds for anything to become searchable
TARGET = 8.0  # times alone
MODEL, DIMS = "simulated", 64
START_TIMEOUT = 240.0  # seconds


def main(
    pages: Annotated[int, typer.Option(min=100, help="Pages of the large site.")] = 1_000,
    rounds: Annotated[int, typer.Option(min=1, help="Small sites, one after the other.")] = 3,
    milliseconds: Annotated[float, typer.Option(min=0, help="That the simulated model takes for a text.")] = 4.0,
) -> None:
    """A small site's 20 pages beside the import of a large one, over the same alone."""
    sites = [f"bench-{kind}-{number}" for kind in ("alone", "beside") for number in range(rounds)]
    with simulated_model(milliseconds / 1000) as url, home([LARGE, WARM, *sites]) as settings:
        os.environ |= {
            "PAGEWIRE_EMBEDDER": f"openai:{MODEL}",
            "OPENAI_BASE_URL": f"{url}/v1",
            "OPENAI_API_KEY": "none",
        }
        asyncio.run(_run(settings, pages, rounds, milliseconds))


async def _run(settings: Settings, pages: int, rounds: int, milliseconds: float) -> None:
    async with AsyncExitStack() as stack:
        configured = await stack.enter_async_context(servers(settings))
        elastic = await stack.enter_async_context(Elastic(str(configured.elasticsearch), configured))
        sender = await stack.enter_async_context(KafkaSender(configured, linger_ms=LINGER_MS))
        await stack.enter_async_context(worker("ingest", "--lane", "bulk"))
        await _searchable(elastic, await _send(sender, WARM, range(PAGES)))
        alone = [await _took(sender, elastic, f"bench-alone-{number}") for number in track(range(rounds), "alone")]
        beside: list[float] = []
        began, large = perf_counter(), list[str]()
        for number in track(range(rounds), "beside"):
            sent = await _send(sender, LARGE, range(number * pages, (number + 1) * pages))
            large += sent
            await _searchable(elastic, sent[:BEGUN] if number == 0 else ())
            beside.append(await _took(sender, elastic, f"bench-beside-{number}"))
        left = await _waiting(elastic, large)
        rate = (len(large) - len(left)) / (perf_counter() - began)
    mean = [sum(times) / rounds for times in (alone, beside)]
    lines = [
        ("alone", *(round(value, 2) for value in (mean[0], min(alone), max(alone))), 1.0),
        (f"beside {pages:,}", *(round(value, 2) for value in (mean[1], min(beside), max(beside))), mean[1] / mean[0]),
    ]
    report(
        "shares",
        f"{PAGES} pages of a small site, {milliseconds:g} ms a text; the large one got on with {rate:.2f} pages/s",
        ("", "seconds", "least", "most", "times alone"),
        lines,
        alone=alone,
        beside=beside,
        large_rate=rate,
        left=len(left),
        load=os.getloadavg(),
        target=TARGET,
    )


async def _took(sender: KafkaSender, elastic: Elastic, site: str) -> float:
    """Seconds until a small site is searchable, all of it."""
    began = perf_counter()
    await _searchable(elastic, await _send(sender, site, range(PAGES)))
    return perf_counter() - began


async def _send(sender: KafkaSender, site: str, numbers: range) -> list[str]:
    """Keys of the pages, in the order in which they were sent."""
    keys: list[str] = []
    # Other texts for each site: what one has embedded would be known of the next. Newer than what a run before has
    # deleted: Elasticsearch remembers for a minute what that was.
    first, revision = sum(site.encode()) * 1_000_000, round(time() * 1000)
    for some in chunked(numbers, AT_ONCE):
        pages = (change(site, first + number, PARAGRAPHS) for number in some)
        changes = [page.model_copy(update={"revision": revision}) for page in pages]
        await sender.send_many([Outgoing(CHANGES, each.page_key, each, lane="bulk") for each in changes])
        keys += [each.page_key for each in changes]
    return keys


async def _searchable(elastic: Elastic, keys: Collection[str]) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            if not (keys := await _waiting(elastic, keys)):
                return
            await asyncio.sleep(LOOK_EVERY)


async def _waiting(elastic: Elastic, keys: Collection[str]) -> list[str]:
    known = await elastic.pages.receipts(keys)
    return [key for key in keys if key not in known or known[key].state != "searchable"]


@contextmanager
def simulated_model(seconds: float) -> Iterator[str]:
    """URL of a simulated model in OpenAI's format, in a process of its own; one call at a time, `seconds` a text."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_serve, args=(theirs, seconds), daemon=True)
    process.start()
    try:
        if not ours.poll(START_TIMEOUT):
            raise TimeoutError("the simulated model did not start")
        yield ours.recv()
    finally:
        process.terminate()
        process.join()


def _serve(parent: Connection, seconds: float) -> None:
    asyncio.run(_served(parent, seconds))


async def _served(parent: Connection, seconds: float) -> None:
    busy = asyncio.Lock()
    made = FakeEmbedder(DIMS)

    async def embed(request: web.Request) -> web.Response:
        asked = await request.json()
        texts = asked["input"]
        async with busy:
            await asyncio.sleep(seconds * len(texts))
        vectors = (await made.passages(texts)).round(4).tolist()
        made.embedded.clear()
        data = [{"object": "embedding", "index": n, "embedding": vector} for n, vector in enumerate(vectors)]
        usage = {"prompt_tokens": 0, "total_tokens": 0}
        return web.json_response({"object": "list", "data": data, "model": asked["model"], "usage": usage})

    app = web.Application(client_max_size=64 * 1024**2)
    app.router.add_post("/v1/embeddings", embed)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    [(host, port)] = [address[:2] for address in runner.addresses]
    parent.send(f"http://{host}:{port}")
    await asyncio.Event().wait()
