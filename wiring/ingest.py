"""The ingest stages, the stage `rebuild` and rebuilds, put together from settings; they share one set of clients."""

from __future__ import annotations

import asyncio
from functools import partial

from adapters.elastic.bundle import Elastic
from adapters.elastic.indexes import RECEIPTS as RECEIPT_INDEX
from adapters.embedders.registry import Models
from adapters.extraction.reader import DocumentReader
from adapters.kafka.bus import KafkaBus
from adapters.kafka.log import KafkaLogReader
from connectors.cms.fetching import SafeFetch
from pipelines.ingest import handlers
from pipelines.ingest.documents.attachments import PAGE_TIMEOUT, Attachments, Limits
from pipelines.ingest.embed import Embedding
from pipelines.ingest.heads import superseded
from pipelines.operate.rebuild.build import OrderedPages, build_handler, failed_build
from pipelines.operate.rebuild.catch_up import Report
from pipelines.operate.rebuild.orders import WorkerOrders
from pipelines.operate.rebuild.rebuild import Defaults, Rebuilder
from pipelines.operate.site_log import SiteBus
from pipelines.runtime.bus import Producer
from pipelines.runtime.record import Lane, Record
from pipelines.runtime.retry import RetryPolicy
from pipelines.runtime.stage import Stage
from schemas.ingest import Chunker
from schemas.keys import page_of_part
from schemas.topics import CHANGES, CHUNKS, EMBEDDINGS, ORDERS, RECEIPTS
from text import words
from wiring.settings import Settings

# Seconds without progress of the page or of the model's queue (pipelines.runtime.try_limit): bge-m3 may take a minute
# for its largest call on a small machine. A whole page has no time limit: one of 4 MiB has some 8,000 chunks, and the
# model may be busy with other pages.
EMBED_TIMEOUT = 300.0


# Seconds. What attachments may take, and then a page of 4 MiB.
CHUNK_TIMEOUT = PAGE_TIMEOUT + 60.0


def by_page(record: Record) -> bytes:
    """The order key of embeddings: parts of a page in order, pages concurrently."""
    return page_of_part((record.key or b"").decode(errors="replace")).encode()


def attachments_of(settings: Settings) -> Attachments:
    """The reader of attachments, within the settings' limits; its child process starts at the first use."""
    limits = Limits(settings.attachment_limit, folders=settings.attachment_folders)
    return Attachments(SafeFetch(settings.fetch_allow), DocumentReader(), limits)


def chunk_stage(settings: Settings, elastic: Elastic, attachments: Attachments, lane: Lane = "save") -> Stage:
    """`attachments`: shared by the lanes of the process; closed with the stage."""

    async def chunker_of(site: str) -> Chunker:
        live = await elastic.indexes.now(site)
        return live.cut if live else settings.chunker

    read = partial(attachments.read, urgent=lane == "save")
    return Stage(
        name="chunk",
        lane=lane,
        routes={CHANGES: handlers.chunk_handler(chunker_of, read, partial(superseded, elastic.pages))},
        try_timeout=CHUNK_TIMEOUT,
        on_dead=handlers.failed_receipt("chunk", handlers.change_in_log),
        teardown=attachments.aclose,
    )


def embed_stage(elastic: Elastic, models: Models, lane: Lane = "save") -> Stage:
    embedding = Embedding(models, elastic.pages, urgent=lane == "save")
    return Stage(
        name="embed",
        lane=lane,
        routes={CHUNKS: handlers.embed_handler(embedding)},
        try_timeout=EMBED_TIMEOUT,
        on_dead=handlers.failed_receipt("embed", handlers.change_of_chunks),
        setup=models.warm,
    )


def index_stage(settings: Settings, elastic: Elastic, lane: Lane = "save") -> Stage:
    log = KafkaLogReader(settings, CHANGES)

    async def setup() -> None:
        await elastic.indexes.ensure_system(RECEIPT_INDEX)
        await asyncio.to_thread(words.ready, settings.spoken)

    return Stage(
        name="index",
        lane=lane,
        routes={
            EMBEDDINGS: handlers.index_handler(elastic.pages, log),
            RECEIPTS: handlers.receipt_handler(elastic.pages.put_receipt),
        },
        order_key=by_page,
        on_dead=handlers.failed_receipt("index", handlers.change_of_part),
        setup=setup,
        teardown=log.aclose,
    )


def rebuild_stage(settings: Settings, elastic: Elastic, models: Models) -> Stage:
    """In the bulk lane only. The model of a new index is loaded with its first order."""
    log, attachments = KafkaLogReader(settings, CHANGES), attachments_of(settings)
    pages = OrderedPages(elastic.indexes, elastic.pages, models, log, partial(attachments.read, urgent=False))

    async def teardown() -> None:
        await attachments.aclose()
        await log.aclose()

    return Stage(
        name="rebuild",
        lane="bulk",
        routes={ORDERS: build_handler(pages)},
        try_timeout=max(CHUNK_TIMEOUT, EMBED_TIMEOUT),
        on_dead=failed_build,
        setup=partial(asyncio.to_thread, words.ready, settings.spoken),
        teardown=teardown,
    )


def rebuilder(
    site: str,
    settings: Settings,
    elastic: Elastic,
    models: Models,
    report: Report = lambda _: None,
    workers: Producer | None = None,
) -> Rebuilder:
    """The rebuilds of one site.

    Args:
        report: receives the progress of a step.
        workers: sends pages to workers; default: this process fills the index.

    Raises:
        UnknownSite.
    """
    settings.site(site)
    kafka, policy = KafkaBus(settings), RetryPolicy()
    bus = SiteBus(kafka, elastic.places, site)
    defaults = Defaults(settings.embedder, settings.chunker, policy)
    attachments = partial(attachments_of, settings)

    def orders(index: str) -> WorkerOrders:
        assert workers is not None
        return WorkerOrders(index, workers, kafka, policy)

    ordering = orders if workers is not None else None
    return Rebuilder(site, defaults, elastic, models, bus, attachments, report, ordering)
