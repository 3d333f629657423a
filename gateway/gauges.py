"""Gauges of what Kafka and Elasticsearch say of the pipeline: a stage whose last worker died reports no lag itself."""

from __future__ import annotations

import asyncio
from time import monotonic

import structlog
from prometheus_client import Gauge

from gateway.ports import Status
from schemas.http import SystemStatus

log = structlog.get_logger(__name__)

TTL = 5.0  # seconds; however often /metrics is read, the servers are asked no more often than this
TIMEOUT = 5.0  # seconds; Prometheus gives up after 10

SERVICE_UP = Gauge("pagewire_service_up", "Whether Kafka and Elasticsearch answer.", ("service",))
LAG = Gauge("pagewire_lag_messages", "Messages a stage has not worked on yet.", ("stage",))
WORKERS = Gauge("pagewire_workers", "Processes that work on a stage.", ("stage",))
KEPT_DEAD_LETTERS = Gauge("pagewire_kept_dead_letters", "Dead letters of a stage that are kept.", ("stage",))
PAGES = Gauge("pagewire_pages", "Live pages of a site.", ("site",))
FRESHNESS = Gauge(
    "pagewire_freshness_seconds", "Accepted to searchable, changes of the last 24 hours.", ("site", "quantile")
)


class StatusGauges:
    """Keeps the gauges as fresh as the last look at `/metrics`. One per process."""

    def __init__(self, status: Status) -> None:
        self._status = status
        self._lock = asyncio.Lock()
        self._good_until = 0.0  # monotonic

    async def refresh(self) -> None:
        """Ask and show, at most once in `TTL`. What cannot be said shows nothing, never an old figure."""
        async with self._lock:
            if monotonic() < self._good_until:
                return
            try:
                async with asyncio.timeout(TIMEOUT):
                    found = await self._status.status()
            except TimeoutError:
                log.warning("no status for the gauges", seconds=TIMEOUT)
                _clear()
            else:
                show(found)
            self._good_until = monotonic() + TTL


def show(found: SystemStatus) -> None:
    """Set every gauge from one look."""
    _clear()
    SERVICE_UP.labels("kafka").set(found.kafka)
    SERVICE_UP.labels("elasticsearch").set(found.elasticsearch)
    for stage in found.stages:
        LAG.labels(stage.stage).set(stage.lag)
        WORKERS.labels(stage.stage).set(stage.members)
        KEPT_DEAD_LETTERS.labels(stage.stage).set(stage.dead_letters)
    for site in found.sites:
        PAGES.labels(site.site).set(site.pages)
        for quantile, ms in (("0.5", site.freshness_p50_ms), ("0.95", site.freshness_p95_ms)):
            if ms is not None:
                FRESHNESS.labels(site.site, quantile).set(ms / 1000)


def _clear() -> None:
    for gauge in (SERVICE_UP, LAG, WORKERS, KEPT_DEAD_LETTERS, PAGES, FRESHNESS):
        gauge.clear()
