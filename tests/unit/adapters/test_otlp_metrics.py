"""What is counted for Prometheus is sent as OpenTelemetry's instruments would have counted it, and nothing else is."""

from __future__ import annotations

from threading import Event
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Histogram,
    InMemoryMetricReader,
    Metric,
    MetricExporter,
    MetricExportResult,
    MetricsData,
    Sum,
)
from opentelemetry.sdk.metrics.view import ExplicitBucketHistogramAggregation, View
from opentelemetry.sdk.resources import Resource
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics as conventions
from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client import Histogram as Counted

from adapters.otlp_metrics import SentMetrics, read
from pipelines.runtime import metrics, tracing
from pipelines.runtime.errors import Retryable
from schemas.answer import Usage
from tests.tracing import traced

NOW = 1_800_000_000_000_000_000
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"


def seen(registry: CollectorRegistry) -> dict[str, Metric]:
    """What is read, by name; its encoding is tried as well."""
    data = read(registry, Resource({"service.name": "town"}), NOW)
    assert encode_metrics(data).resource_metrics
    [resource] = data.resource_metrics
    [scope] = resource.scope_metrics
    return {metric.name: metric for metric in scope.metrics}


def points(metric: Metric) -> dict[tuple[tuple[str, Any], ...], Any]:
    return {tuple(sorted((point.attributes or {}).items())): point for point in metric.data.data_points}


def test_a_counter_is_a_sum_with_its_labels_and_the_trace_of_its_last_one() -> None:
    registry = CollectorRegistry()
    counter = Counter("pagewire_fruit_total", "Fruit.", ("kind", "colour"), registry=registry)
    counter.labels("apple", "").inc(2)
    counter.labels("plum", "blue").inc(exemplar={"trace_id": TRACE, "span_id": SPAN})
    metric = seen(registry)["pagewire_fruit"]
    assert isinstance(metric.data, Sum)
    assert metric.data.is_monotonic
    assert metric.data.aggregation_temporality == AggregationTemporality.CUMULATIVE
    found = points(metric)
    apples, plums = found[("kind", "apple"),], found[("colour", "blue"), ("kind", "plum")]
    assert (apples.value, apples.exemplars, plums.value) == (2, [], 1)
    assert 0 < apples.start_time_unix_nano < NOW == apples.time_unix_nano
    [exemplar] = plums.exemplars
    assert (exemplar.trace_id, exemplar.span_id, exemplar.value) == (int(TRACE, 16), int(SPAN, 16), 1)


def test_others_counters_and_gauges_are_not_sent() -> None:
    registry = CollectorRegistry()
    Counter("python_fruit_total", "Fruit.", registry=registry).inc()
    Gauge("pagewire_fruit", "Fruit.", registry=registry).set(3)
    Counted("pagewire_never", "Nothing.", ("kind",), registry=registry)
    assert seen(registry) == {}


def test_it_is_what_opentelemetrys_own_histogram_would_have_said() -> None:
    """The same call of a model, counted by us and by the SDK's instrument of the conventions."""
    bounds = metrics.CALL_TOKENS._kwargs["buckets"]
    reader = InMemoryMetricReader()
    view = View(instrument_name="*", aggregation=ExplicitBucketHistogramAggregation(bounds))
    with traced():
        meter = MeterProvider([reader], views=[view], shutdown_on_exit=False).get_meter("pagewire")
        theirs = conventions.create_gen_ai_client_token_usage(meter)
        with tracing.request("POST", {}), tracing.inference("chat", "twin", "http://models.example") as call:
            call.first_word()
            call.answered(Usage(model="twin-2", prompt_tokens=64, completion_tokens=7), "stop")
    about = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "twin",
    }
    for kind, tokens in (("input", 64), ("output", 7)):
        theirs.record(tokens, about | {"gen_ai.token.type": kind})
    data = reader.get_metrics_data()
    assert data is not None
    [expected] = data.resource_metrics[0].scope_metrics[0].metrics
    ours = seen(_only("twin"))[expected.name]
    assert (ours.unit, expected.unit) == ("{token}", "{token}")
    for labels, point in points(expected).items():
        mine = points(ours)[labels]
        for field in ("count", "sum", "bucket_counts", "explicit_bounds"):
            assert list(_many(getattr(mine, field))) == list(_many(getattr(point, field))), field


def _many(value: Any) -> Any:
    return value if isinstance(value, list | tuple) else (value,)


def _only(model: str) -> CollectorRegistry:
    """What was counted of calls of this model."""

    class Those:
        def collect(self) -> Any:
            for one in (metrics.CALL_SECONDS, metrics.CALL_FIRST_CHUNK_SECONDS, metrics.CALL_TOKENS):
                for family in one.collect():
                    family.samples = [each for each in family.samples if each.labels["gen_ai_request_model"] == model]
                    yield family

    registry = CollectorRegistry()
    registry.register(Those())  # type: ignore[arg-type]
    return registry


def test_a_call_of_a_model_says_how_long_it_took_and_how_it_failed() -> None:
    with traced() as spans:
        with tracing.request("POST", {}), tracing.inference("chat", "timed", "http://models.example") as call:
            call.first_word()
            call.first_word()
            call.answered(Usage(), "stop")
        with pytest.raises(Retryable), tracing.inference("embeddings", "timed", ""):  # in no trace
            raise Retryable("away")
        span = spans.one("chat timed").context
    found = seen(_only("timed"))
    assert set(found) == {"gen_ai.client.operation.duration", "gen_ai.client.operation.time_to_first_chunk"}
    took = points(found["gen_ai.client.operation.duration"])
    chat = ("gen_ai.operation.name", "chat"), ("gen_ai.provider.name", "openai"), ("gen_ai.request.model", "timed")
    failed = ("error.type", Retryable.code), ("gen_ai.operation.name", "embeddings"), ("gen_ai.request.model", "timed")
    assert {labels: point.count for labels, point in took.items()} == {chat: 1, failed: 1}
    assert span is not None
    assert [each.span_id for each in took[chat].exemplars] == [span.span_id]
    assert took[failed].exemplars == []
    assert points(found["gen_ai.client.operation.time_to_first_chunk"])[chat].count == 1


def test_while_tracing_is_off_no_call_is_counted() -> None:
    with tracing.inference("chat", "unseen", "http://models.example") as call:
        call.first_word()
        call.answered(Usage(prompt_tokens=3, completion_tokens=4), "stop")
    assert seen(_only("unseen")) == {}
    assert tracing.exemplar() is None


def test_an_unsampled_trace_is_no_exemplar() -> None:
    with traced(), tracing.request("GET", {"traceparent": f"00-{TRACE}-{SPAN}-00"}):
        assert tracing.exemplar() is None
    with traced(), tracing.request("GET", {"traceparent": f"00-{TRACE}-{SPAN}-01"}):
        assert (tracing.exemplar() or {})["trace_id"] == TRACE


class Kept(MetricExporter):
    """In place of what sends: keeps it. `fails` is what the first tries come to."""

    def __init__(self, *fails: Exception) -> None:
        super().__init__()
        self.fails = list(fails)
        self.taken: list[MetricsData] = []
        self.twice = Event()
        self.ended = False

    def export(self, metrics_data: MetricsData, timeout_millis: float = 0, **_: Any) -> MetricExportResult:
        if self.fails:
            raise self.fails.pop()
        self.taken.append(metrics_data)
        if len(self.taken) > 1:
            self.twice.set()
        return MetricExportResult.SUCCESS

    def force_flush(self, timeout_millis: float = 0) -> bool:
        return True

    def shutdown(self, timeout_millis: float = 0, **_: Any) -> None:
        self.ended = True


def total(data: MetricsData) -> int:
    [metric] = data.resource_metrics[0].scope_metrics[0].metrics
    assert isinstance(metric.data, Histogram)
    [point] = metric.data.data_points
    return point.count


def test_it_is_sent_again_and_again_also_after_a_failure() -> None:
    exporter, registry = Kept(RuntimeError("broken")), CollectorRegistry()
    Counted("pagewire_seconds", "Time.", buckets=(1, 2), registry=registry).observe(1.5)
    sent = SentMetrics(exporter, registry, Resource({}), 0.001)
    assert exporter.twice.wait(60)
    sent.shutdown()
    assert exporter.ended


def test_the_last_counts_are_sent_before_the_process_ends() -> None:
    exporter, registry = Kept(), CollectorRegistry()
    seconds = Counted("pagewire_seconds", "Time.", buckets=(1, 2), registry=registry)
    sent = SentMetrics(exporter, registry, Resource({}), 3600)
    seconds.observe(1.5)
    sent.shutdown()
    assert [total(data) for data in exporter.taken] == [1]
