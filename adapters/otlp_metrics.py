"""What this process has counted, by OTLP: a second way to read the counters that Prometheus reads, and no second count.

    prometheus_client.REGISTRY ─▶ every minute, and at the end ─▶ exporter ─▶ collector

Counters and histograms only, cumulative, as they are: what a gauge says holds for the moment in which it is read, and
those of the whole pipeline are as old as the last look at `/metrics`.
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
# What Prometheus' names cannot say. Units are told where they are no part of the name.
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
    """Sends what is counted, from a thread of its own, until `shutdown`."""

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
        """Send for the last time; as long as a collector that is away takes to time out."""
        self._ending.set()
        self._thread.join()
        self._exporter.shutdown()

    def _run(self) -> None:
        ending = False
        while not ending:
            ending = self._ending.wait(self._interval)
            try:
                self._exporter.export(read(self._registry, self._resource, time_ns()))
            except Exception:  # what cannot be sent now is in what is sent next
                log.exception("metrics are not sent")


def read(registry: CollectorRegistry, resource: Resource, now: int) -> MetricsData:
    """All that is counted, at `now` (nanoseconds since 1970)."""
    metrics = [made for counted in registry.collect() if (made := _metric(counted, now)) is not None]
    scope = ScopeMetrics(InstrumentationScope("pagewire"), metrics, "")
    return MetricsData([ResourceMetrics(resource, [scope], "")])


def _metric(counted: Counted, now: int) -> Metric | None:
    if not counted.name.startswith(OURS):
        return None
    name, unit = NAMES.get(counted.name, (counted.name, ""))
    data: Sum | Histogram
    if counted.type == "counter":
        numbers = [_number(samples, now) for samples in _by_labels(counted.samples)]
        data = Sum(numbers, AggregationTemporality.CUMULATIVE, is_monotonic=True)
    elif counted.type == "histogram":
        data = Histogram([_shape(one, now) for one in _by_labels(counted.samples)], AggregationTemporality.CUMULATIVE)
    else:
        return None
    return Metric(name, counted.documentation, unit, data) if data.data_points else None


def _by_labels(samples: Iterable[Sample]) -> Iterator[dict[str, list[Sample]]]:
    """The samples of each series, by what they say of it: `total`, `bucket`, `sum`, `count`, `created`."""
    series: dict[tuple[tuple[str, str], ...], dict[str, list[Sample]]] = defaultdict(lambda: defaultdict(list))
    for sample in samples:
        labels = tuple(sorted((name, value) for name, value in sample.labels.items() if name != "le"))
        series[labels][sample.name.rpartition("_")[2]].append(sample)
    yield from series.values()


def _number(samples: Mapping[str, list[Sample]], now: int) -> NumberDataPoint:
    [total] = samples["total"]
    return NumberDataPoint(_labels(total), _began(samples, now), now, total.value, _exemplars([total]))


def _shape(samples: Mapping[str, list[Sample]], now: int) -> HistogramDataPoint:
    buckets = sorted(samples["bucket"], key=lambda sample: float(sample.labels["le"]))
    below = [0, *(int(sample.value) for sample in buckets)]  # Prometheus counts all that is not larger
    unknown = cast(float, None)  # is left out
    return HistogramDataPoint(
        attributes=_labels(buckets[0]),
        start_time_unix_nano=_began(samples, now),
        time_unix_nano=now,
        count=below[-1],
        sum=samples["sum"][0].value,
        bucket_counts=[after - before for before, after in pairwise(below)],
        explicit_bounds=[bound for sample in buckets if (bound := float(sample.labels["le"])) < inf],
        min=unknown,
        max=unknown,
        exemplars=_exemplars(buckets),
    )


def _began(samples: Mapping[str, list[Sample]], now: int) -> int:
    """Since when it is counted; Prometheus' client may be told not to say so."""
    created = samples.get("created")
    return round(created[0].value * 1e9) if created else now


def _labels(sample: Sample) -> dict[str, str]:
    """An empty label is none."""
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
