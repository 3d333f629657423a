"""Gauges of what Kafka and Elasticsearch say of the pipeline: a stage whose last worker died reports no lag itself.

With `metrics_port` a gateway's metrics are on a port of their own, which no visitor reaches:

GET /metrics   Prometheus          GET /healthz   200 while the process lives
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import structlog
from prometheus_client import REGISTRY, Gauge, make_wsgi_app
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from gateway.edge.rates import Cached
from pipelines.operate.dead_letters.letters import Letters
from pipelines.operate.status import StatusReader
from pipelines.runtime.errors import Retryable
from schemas.http import SystemStatus
from schemas.letters import OpenLetterCount
from worker.health import Application, Start, listening

log = structlog.get_logger(__name__)

TTL = 5.0  # seconds; however often /metrics is read, the servers are asked no more often than this
WRITTEN = 1.0  # seconds that the text of all metrics is as good as a new one
OPENMETRICS = "application/openmetrics-text"
TIMEOUT = 5.0  # seconds; Prometheus gives up after 10

SERVICE_UP = Gauge("pagewire_service_up", "Whether Kafka and Elasticsearch answer.", ("service",))
LAG = Gauge("pagewire_lag_messages", "Messages a stage has not worked on yet.", ("stage", "lane"))
WORKERS = Gauge("pagewire_workers", "Processes that work on a stage.", ("stage", "lane"))
DEAD_LETTERS = Gauge("pagewire_dead_letters_open", "Dead letters that are not settled.", ("stage", "code"))
PARKED = Gauge("pagewire_parked", "Messages of sites in trouble, which come back by themselves.", ("stage", "code"))
PAGES = Gauge("pagewire_pages", "Live pages of a site.", ("site",))
FRESHNESS = Gauge(
    "pagewire_freshness_seconds",
    "Accepted to searchable, changes of the last 24 hours; of all sites together, the slowest one's.",
    ("site", "quantile"),
)


class StatusGauges:
    """Keeps the gauges as fresh as the last look at `/metrics`. One per process.

    Args:
        label: what metrics call a site.
    """

    def __init__(self, status: StatusReader, letters: Letters, label: Callable[[str], str]) -> None:
        self._status = status
        self._letters = letters
        self._label = label
        self._shown = Cached(self._show, TTL)

    async def refresh(self) -> None:
        """Ask and show, at most once in `TTL`. What cannot be said shows nothing, never an old figure."""
        await self._shown.get()

    async def _show(self) -> None:
        try:
            async with asyncio.timeout(TIMEOUT):
                found = await self._status.status()
                letters = await self._letters.open_counts() if found.kafka else ()
        except (TimeoutError, Retryable) as err:
            log.warning("no status for the gauges", seconds=TIMEOUT, error=repr(err))
            _clear()
        else:
            show(found, letters, self._label)


class Exposition:
    """All metrics of this process as text, written at most once in `WRITTEN` however many scrape. One per process."""

    def __init__(self, gauges: StatusGauges) -> None:
        self._gauges = gauges
        encoders = {openmetrics: choose_encoder(OPENMETRICS if openmetrics else "") for openmetrics in (False, True)}
        self._kinds = {wanted: kind for wanted, (_, kind) in encoders.items()}
        self._kept = {wanted: Cached(partial(self._write, encode), WRITTEN) for wanted, (encode, _) in encoders.items()}

    async def get(self, accept: str) -> tuple[bytes, str]:
        """The text and its media type: OpenMetrics, with traces as exemplars, for who accepts it."""
        wanted = OPENMETRICS in accept
        return await self._kept[wanted].get(), self._kinds[wanted]

    async def _write(self, encode: Callable[[Collector], bytes]) -> bytes:
        await self._gauges.refresh()
        return encode(REGISTRY)


def show(found: SystemStatus, letters: Iterable[OpenLetterCount], label: Callable[[str], str]) -> None:
    """Set every gauge from one look."""
    _clear()
    SERVICE_UP.labels("kafka").set(found.kafka)
    SERVICE_UP.labels("elasticsearch").set(found.elasticsearch)
    for stage in found.stages:
        LAG.labels(stage.stage, stage.lane or "").set(stage.lag)
        WORKERS.labels(stage.stage, stage.lane or "").set(stage.members)
    for letter in letters:
        (PARKED if letter.parked else DEAD_LETTERS).labels(letter.stage or "", letter.code).inc(letter.count)
    slowest: dict[tuple[str, str], float] = {}
    for site in found.sites:
        name = label(site.site)
        PAGES.labels(name).inc(site.pages)
        for quantile, ms in (("0.5", site.freshness_p50_ms), ("0.95", site.freshness_p95_ms)):
            if ms is not None:
                slowest[name, quantile] = max(ms / 1000, slowest.get((name, quantile), 0.0))
    for labels, seconds in slowest.items():
        FRESHNESS.labels(*labels).set(seconds)


def _clear() -> None:
    for gauge in (SERVICE_UP, LAG, WORKERS, DEAD_LETTERS, PARKED, PAGES, FRESHNESS):
        gauge.clear()


@contextmanager
def metrics_served(host: str, port: int | None, gauges: StatusGauges) -> Iterator[int | None]:
    """Answer while the block runs, which gets the port; nothing without one. To be entered on the event loop.

    Raises:
        SettingsError: the port is taken.
    """
    if port is None:
        yield None
        return
    with listening(host, port, application(gauges, asyncio.get_running_loop())) as served:
        yield served


def application(gauges: StatusGauges, loop: asyncio.AbstractEventLoop) -> Application:
    """The WSGI application; `loop`: the gateway's, on which its servers are asked."""
    metrics = make_wsgi_app()

    def answer(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path == "/metrics":
            asyncio.run_coroutine_threadsafe(gauges.refresh(), loop).result(2 * TIMEOUT)
            answered: Iterable[bytes] = metrics(environ, start)
            return answered
        found = path == "/healthz"
        start("200 OK" if found else "404 Not Found", [("Content-Type", "application/json")])
        return [json.dumps({"alive": True} if found else {"code": "not-found"}).encode()]

    return answer
