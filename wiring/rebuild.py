"""Rebuilds, put together from settings."""

from __future__ import annotations

from functools import partial

from adapters.elastic.bundle import Elastic
from adapters.embedders.registry import Models
from adapters.kafka.bus import KafkaBus
from pipelines.operate.places.site_log import SiteBus
from pipelines.operate.rebuild.catch_up import Report
from pipelines.operate.rebuild.rebuild import Defaults, Rebuilder
from pipelines.operate.rebuild.watermark import IndexedWatermark
from pipelines.runtime.retry import RetryPolicy
from wiring.ingest import attachments_of
from wiring.settings import Settings


def rebuilder(
    site: str, settings: Settings, elastic: Elastic, models: Models, report: Report = lambda _: None
) -> Rebuilder:
    """Works on the generations of one site; `report` is told how far a step is. Raises: UnknownSite."""
    settings.site(site)
    bus = SiteBus(KafkaBus(settings), elastic.places, site)
    defaults = Defaults(settings.embedder, settings.chunker, RetryPolicy(settings.tries, settings.retry_for))
    return Rebuilder(
        site, defaults, elastic, models, bus, partial(attachments_of, settings), IndexedWatermark(bus), report
    )
