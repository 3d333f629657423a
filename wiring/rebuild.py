"""Rebuilds, put together from settings."""

from __future__ import annotations

from functools import partial

from adapters.elastic.bundle import Elastic
from adapters.embedders.registry import Models
from adapters.kafka.bus import KafkaBus
from pipelines.operate.places.site_log import SiteBus
from pipelines.operate.rebuild.catch_up import Report
from pipelines.operate.rebuild.orders import WorkerOrders
from pipelines.operate.rebuild.rebuild import Defaults, Rebuilder
from pipelines.operate.rebuild.watermark import IndexedWatermark
from pipelines.runtime.bus import Producer
from pipelines.runtime.retry import RetryPolicy
from wiring.ingest import attachments_of
from wiring.settings import Settings


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
    return Rebuilder(site, defaults, elastic, models, bus, attachments, IndexedWatermark(bus), report, ordering)
