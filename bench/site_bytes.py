"""One small site among many: what an audit and a rebuild of it read, with and without places noted.

    many sites ─▶ imported one after the other, then saves by chance ─▶ cms.changes ─┬─▶ as if nothing were noted
                                                                                      ├─▶ the first, which notes
                                                                                      └─▶ another site, after it
    the small site alone ─▶ cms.changes of its own ─▶ read whole: its own bytes

Counted are the bytes that come from Kafka and from Elasticsearch, whatever is in them: batches that several records
share, compressed as they are, metadata, places.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

from aiohttp.client_proto import ResponseHandler
from rich.progress import track

from adapters.elastic.bundle import Elastic
from adapters.elastic.inventory import Inventories
from adapters.embedders.fake import FakeEmbedder
from adapters.kafka import KafkaSender
from adapters.kafka.bus import KafkaBus
from adapters.kafka.scan import LogScan
from adapters.kafka.sender import Outgoing
from bench.report import report
from bench.servers import servers
from bench.synthetic import AT_ONCE, LINGER_MS, change
from bench.system import home
from pipelines.operate.audit.repair import Auditor
from pipelines.operate.places.site_log import SiteBus
from pipelines.operate.rebuild.rebuild import Defaults, Rebuilder
from pipelines.operate.rebuild.watermark import IndexedWatermark
from pipelines.runtime.bus import Bus
from pipelines.runtime.retry import RetryPolicy
from schemas.topics import CHANGES
from wiring.clients import Clients
from wiring.ingest import attachments_of
from wiring.settings import Settings

PAGES = 20  # of a site
SAVES = 5  # of pages of a site by chance, after all were imported
PARAGRAPHS = 6  # of a page: some 3 kB
SENDERS = 8  # that save at once
SEED = 4


@dataclass
class Came:
    """Bytes that came from the servers."""

    kafka: int = 0
    elasticsearch: int = 0


@contextmanager
def counted() -> Iterator[Came]:
    """Only Kafka's client reads by asyncio's streams, and only Elasticsearch's by aiohttp."""
    came, stream, http = Came(), asyncio.StreamReader.feed_data, ResponseHandler.data_received

    def from_kafka(self: asyncio.StreamReader, data: Any) -> None:
        came.kafka += len(data)
        stream(self, data)

    def from_elasticsearch(self: ResponseHandler, data: bytes) -> None:
        came.elasticsearch += len(data)
        http(self, data)

    asyncio.StreamReader.feed_data, ResponseHandler.data_received = from_kafka, from_elasticsearch  # type: ignore[method-assign]
    try:
        yield came
    finally:
        asyncio.StreamReader.feed_data, ResponseHandler.data_received = stream, http  # type: ignore[method-assign]


class _NoModel(FakeEmbedder):
    """The embedder of every site; what it makes is not what is measured."""

    async def by_name(self, spec: str) -> FakeEmbedder:
        return self

    async def for_site(self, site: str) -> FakeEmbedder:
        return self

    async def for_new(self, site: str) -> FakeEmbedder:
        return self


def main(sites: int) -> None:
    """Bytes read, and how many times the site's own that is."""
    names = [f"s{number}" for number in range(sites)]
    first, second = random.Random(SEED).sample(names, 2)
    with home([first, second]) as settings:
        asyncio.run(_run(settings, names, first, second))


async def _run(settings: Settings, names: list[str], first: str, second: str) -> None:
    rng = random.Random(SEED)
    saves = [(name, rng.randrange(PAGES)) for name in names for _ in range(SAVES)]
    rng.shuffle(saves)
    async with servers(settings) as configured, Elastic(str(configured.elasticsearch), configured) as elastic:
        alone = configured.model_copy(update={"topic_prefix": f"{configured.topic_prefix}alone-"})
        async with Clients(alone) as clients:
            await clients.topics()
        await _fill(alone, [second], [save for save in saves if save[0] == second])
        await _fill(configured, names, saves)
        own = await _own(alone)
        lines: list[tuple[object, ...]] = [("the site alone, read whole", _kib(own), "", 1.0, "")]
        for what, work in (("audit", _audit), ("rebuild --from changes", _rebuild)):
            for how, site, bus in (
                ("whole log", second, KafkaBus(configured)),
                ("first, notes", first, SiteBus(KafkaBus(configured), elastic.places, first)),
                ("after it", second, SiteBus(KafkaBus(configured), elastic.places, second)),
            ):
                came, seconds = await _measured(partial(work, configured, elastic, site, bus))
                lines.append(
                    (f"{what}, {how}", _kib(came.kafka), _kib(came.elasticsearch), came.kafka / own, round(seconds, 2))
                )
            # So that the rebuild begins as the audit did.
            async with LogScan(configured, CHANGES) as scan:
                await elastic.places.forget(str(await scan.identity()))
    columns = ("what", "from Kafka, KiB", "from Elasticsearch, KiB", "from Kafka, of its own", "seconds")
    about = f"{len(names):,} sites of {PAGES} pages, {SAVES} saves each by chance, one by one"
    report("site-bytes", about, columns, lines)


async def _fill(settings: Settings, names: list[str], saves: list[tuple[str, int]]) -> None:
    async with KafkaSender(settings, linger_ms=LINGER_MS) as sender:
        for name in track(names, description=f"importing {len(names):,} sites"):
            changes = [change(name, number, PARAGRAPHS) for number in range(PAGES)]
            for at in range(0, PAGES, AT_ONCE):
                await sender.send_many([Outgoing(CHANGES, c.page_key, c) for c in changes[at : at + AT_ONCE]])
    await asyncio.gather(*(_save(settings, saves[number::SENDERS]) for number in range(SENDERS)))


async def _save(settings: Settings, saves: list[tuple[str, int]]) -> None:
    """One by one, as editors do: no two of a sender share a batch of the log."""
    async with KafkaSender(settings) as sender:
        for revision, (name, number) in enumerate(saves, 2):
            saved = change(name, number, PARAGRAPHS).model_copy(update={"revision": revision})
            await sender.send(CHANGES, saved.page_key, saved)


async def _own(settings: Settings) -> int:
    async def read() -> None:
        async with LogScan(settings, CHANGES) as scan:
            async for _ in scan.read(until=await scan.ends()):
                pass

    came, _ = await _measured(read)
    return came.kafka


async def _measured(work: Callable[[], Awaitable[None]]) -> tuple[Came, float]:
    began = perf_counter()
    with counted() as came:
        await work()
    return came, perf_counter() - began


async def _audit(settings: Settings, elastic: Elastic, site: str, bus: Bus) -> None:
    """Of a site without an index: all that it reads of Elasticsearch is where its records stand."""
    inventories = Inventories(elastic.es, elastic.indexes, elastic.writer)
    async with KafkaSender(settings) as sender:
        found = await Auditor(lambda _: bus.scan(CHANGES), inventories, elastic.pages, sender).audit(site, settle=0)
    assert found.pages == PAGES, found


async def _rebuild(settings: Settings, elastic: Elastic, site: str, bus: Bus) -> None:
    models = _NoModel()
    defaults = Defaults(models.spec, settings.chunker, RetryPolicy(settings.tries, settings.retry_for))
    made = Rebuilder(site, defaults, elastic, models, bus, partial(attachments_of, settings), IndexedWatermark(bus))
    async with elastic.rebuilds.lease(site):
        filled = await made.fill(await made.begin("changes", fresh=True))
        assert filled.pages >= PAGES, filled
        await made.discard(filled.generation)


def _kib(amount: int) -> float:
    return round(amount / 1024, 1)
