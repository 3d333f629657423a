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
import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from time import perf_counter

from rich.progress import track

from adapters.kafka import KafkaSender
from adapters.kafka.sender import Outgoing
from bench.report import report
from bench.servers import servers
from bench.servers import workers as workers_of
from bench.simulated_embedder import MODEL, models
from bench.synthetic import AT_ONCE, LINGER_MS, change
from bench.system import home
from schemas.rebuild import Rebuild
from schemas.topics import CHANGES
from wiring.clients import Clients
from wiring.settings import Settings

SITE, WARM_SITE = "bench-workers", "bench-warm"
WARM = 16  # pages: workers that have just been started share out the partitions and look at their model
PARAGRAPHS = 4  # of a page: with its title five chunks, and some twenty units
TARGET = 3.5  # times one worker, of four


def main(pages: int, workers: Sequence[int], milliseconds: float) -> None:
    """Pages a second by so many workers, and how many times one worker that is."""
    with models(milliseconds / 1000) as url, home([SITE, WARM_SITE]) as settings:
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
            own = [{"OPENAI_BASE_URL": f"{url}/{number}/v1"} for number in range(1, count + 1)]
            async with workers_of("rebuild", "--lane", "bulk", environments=own):
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
