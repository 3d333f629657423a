"""Exports this process's Prometheus counters by OTLP.

    prometheus_client.REGISTRY ─▶ every minute, and at the end ─▶ exporter ─▶ collector

Only counters and histograms are exported, cumulative. Gauges are left out: those of the whole pipeline are only
measured when `/metrics` is read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from math import inf
from threading import Event, Thread
from time import time_ns
from typing import cast

import structlog
from opentelemetry.sdk.metrics import Exemplar
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExporter,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric as Counted
from prometheus_client.samples import Sample

log = structlog.get_logger(__name__)

OURS = ("pagewire_", "gen_ai_")
# OpenTelemetry's names and units, where Prometheus' naming rules do not allow them.
NAMES = {
    "gen_ai_client_operation_duration_seconds": ("gen_ai.client.operation.duration", "s"),
    "gen_ai_client_operation_time_to_first_chunk_seconds": ("gen_ai.client.operation.time_to_first_chunk", "s"),
    "gen_ai_client_token_usage": ("gen_ai.client.token.usage", "{token}"),
}
LABELS = {
    "gen_ai_operation_name": "gen_ai.operation.name",
    "gen_ai_provider_name": "gen_ai.provider.name",
    "gen_ai_request_model": "gen_ai.request.model",
    "gen_ai_token_type": "gen_ai.token.type",
    "error_type": "error.type",
}


class SentMetrics:
    """Exports the registry from a thread of its own, until `shutdown`."""

    def __init__(
        self, exporter: MetricExporter, registry: CollectorRegistry, resource: Resource, interval: float
    ) -> None:
        self._exporter = exporter
        self._registry = registry
        self._resource = resource
        self._interval = interval  # seconds
        self._ending = Event()
        self._thread = Thread(target=self._run, name="metrics", daemon=True)
        self._thread.start()

    def shutdown(self) -> None:
        """Send once more, and end. Waits for the exporter's timeout where the collector is unreachable."""
        self._ending.set()
        self._thread.join()
        self._exporter.shutdown()

    def _run(self) -> None:
        ending = False
        while not ending:
            ending = self._ending.wait(self._interval)
            try:
                self._exporter.export(read(self._registry, self._resource, time_ns()))
            except Exception:  # counters are cumulative: the next export has this one's counts
                log.exception("metrics are not sent")


def read(registry: CollectorRegistry, resource: Resource, now: int) -> MetricsData:
    """All counters and histograms of the registry, at `now` (nanoseconds since 1970)."""
    metrics = [made for counted in registry.collect() if (made := _metric(counted, now)) is not None]
    scope = ScopeMetrics(InstrumentationScope("pagewire"), metrics, "")
    return MetricsData([ResourceMetrics(resource, [scope], "")])


def _metric(counted: Counted, now: int) -> Metric | None:
    if not counted.name.startswith(OURS):
        return None
    name, unit = NAMES.get(counted.name, (counted.name, ""))
    data: Sum | Histogram
    if counted.type == "counter":
        numbers = [_counter_point(samples, now) for samples in _by_labels(counted.samples)]
        data = Sum(numbers, AggregationTemporality.CUMULATIVE, is_monotonic=True)
    elif counted.type == "histogram":
        data = Histogram(
            [_histogram_point(one, now) for one in _by_labels(counted.samples)], AggregationTemporality.CUMULATIVE
        )
    else:
        return None
    return Metric(name, counted.documentation, unit, data) if data.data_points else None


def _by_labels(samples: Iterable[Sample]) -> Iterator[dict[str, list[Sample]]]:
    """The samples of each series, by their suffix: `total`, `bucket`, `sum`, `count`, `created`."""
    series: dict[tuple[tuple[str, str], ...], dict[str, list[Sample]]] = defaultdict(lambda: defaultdict(list))
    for sample in samples:
        labels = tuple(sorted((name, value) for name, value in sample.labels.items() if name != "le"))
        series[labels][sample.name.rpartition("_")[2]].append(sample)
    yield from series.values()


def _counter_point(samples: Mapping[str, list[Sample]], now: int) -> NumberDataPoint:
    [total] = samples["total"]
    return NumberDataPoint(_labels(total), _start_time(samples, now), now, total.value, _exemplars([total]))


def _histogram_point(samples: Mapping[str, list[Sample]], now: int) -> HistogramDataPoint:
    buckets = sorted(samples["bucket"], key=lambda sample: float(sample.labels["le"]))
    below = [0, *(int(sample.value) for sample in buckets)]  # Prometheus' buckets are cumulative, OTLP's are not
    unknown = cast(float, None)  # the field is left out
    return HistogramDataPoint(
        attributes=_labels(buckets[0]),
        start_time_unix_nano=_start_time(samples, now),
        time_unix_nano=now,
        count=below[-1],
        sum=samples["sum"][0].value,
        bucket_counts=[after - before for before, after in pairwise(below)],
        explicit_bounds=[bound for sample in buckets if (bound := float(sample.labels["le"])) < inf],
        min=unknown,
        max=unknown,
        exemplars=_exemplars(buckets),
    )


def _start_time(samples: Mapping[str, list[Sample]], now: int) -> int:
    """The series' start in nanoseconds; `now` where Prometheus' client is configured not to record it."""
    created = samples.get("created")
    return round(created[0].value * 1e9) if created else now


def _labels(sample: Sample) -> dict[str, str]:
    """The sample's labels without empty ones, which Prometheus treats as absent."""
    return {LABELS.get(name, name): value for name, value in sample.labels.items() if value and name != "le"}


def _exemplars(samples: Iterable[Sample]) -> list[Exemplar]:
    return [
        Exemplar(
            filtered_attributes={},
            value=known.value,
            time_unix_nano=round(float(known.timestamp or 0) * 1e9),
            span_id=int(known.labels["span_id"], 16),
            trace_id=int(known.labels["trace_id"], 16),
        )
        for sample in samples
        if (known := sample.exemplar) is not None
    ]
