"""Tracing is switched on by one setting, and by nothing else; what it lacks is named at the start."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http import metric_exporter, trace_exporter
from opentelemetry.sdk.metrics.export import MetricExporter, MetricExportResult, MetricsData
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from adapters.telemetry import TracingSettings, traced
from pipelines.runtime import tracing
from pipelines.runtime.errors import SettingsError

ON = TracingSettings(tracing=True)
COUNTED = TracingSettings(tracing=True, tracing_metrics=True)


class Collector(SpanExporter):
    """In place of what sends spans: keeps them."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.spans += spans
        return SpanExportResult.SUCCESS


class Counts(MetricExporter):
    """In place of what sends counts: keeps them."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[MetricsData] = []

    def export(self, metrics_data: MetricsData, timeout_millis: float = 0, **_: Any) -> MetricExportResult:
        self.taken.append(metrics_data)
        return MetricExportResult.SUCCESS

    def force_flush(self, timeout_millis: float = 0) -> bool:
        return True

    def shutdown(self, timeout_millis: float = 0, **_: Any) -> None: ...


@pytest.fixture(autouse=True)
def counts(monkeypatch: pytest.MonkeyPatch) -> Counts:
    for name in ("OTEL_METRIC_EXPORT_INTERVAL", "OTEL_EXPORTER_OTLP_METRICS_HEADERS"):
        monkeypatch.delenv(name, raising=False)
    made = Counts()
    monkeypatch.setattr(metric_exporter, "OTLPMetricExporter", lambda: made)
    return made


@pytest.fixture(autouse=True)
def collector(monkeypatch: pytest.MonkeyPatch) -> Collector:
    for name in ("OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES", "OTEL_TRACES_SAMPLER", "OTEL_SDK_DISABLED"):
        monkeypatch.delenv(name, raising=False)
    made = Collector()
    monkeypatch.setattr(trace_exporter, "OTLPSpanExporter", lambda: made)
    return made


def about(collector: Collector) -> dict[str, Any]:
    """Of the process, as it tells of itself."""
    [span] = collector.spans
    return dict(span.resource.attributes)


def one_request() -> None:
    with tracing.request("GET", {}):
        pass


def test_it_is_off_by_default() -> None:
    with traced(TracingSettings(), "pagewire-gateway"):
        assert not tracing.is_on()


def test_what_has_ended_is_sent_before_the_process_ends(collector: Collector) -> None:
    with traced(ON, "pagewire-gateway"):
        assert tracing.is_on()
        one_request()
    assert not tracing.is_on()
    said = about(collector)
    assert (said["service.name"], said["service.namespace"]) == ("pagewire-gateway", "pagewire")
    assert said["service.version"]


@pytest.mark.parametrize(
    ("variable", "value"),
    [("OTEL_SERVICE_NAME", "town"), ("OTEL_RESOURCE_ATTRIBUTES", "service.name=town,deployment=blue")],
)
def test_the_usual_variables_say_what_it_is_called(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    with traced(ON, "pagewire-gateway"):
        one_request()
    assert about(collector)["service.name"] == "town"


@pytest.mark.parametrize(("name", "value"), [("OTEL_TRACES_SAMPLER", "always_off"), ("OTEL_SDK_DISABLED", "true")])
def test_the_usual_variables_say_how_many(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with traced(ON, "pagewire-gateway"):
        one_request()
    assert collector.spans == []


def test_a_collectors_key_with_a_typo_is_told_to_nobody(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization: Bearer hush")
    with pytest.raises(SettingsError, match="OTEL_EXPORTER_OTLP_HEADERS") as caught, traced(ON, "pagewire-gateway"):
        pass
    assert "hush" not in str(caught.value) + caplog.text


def test_another_protocol_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    with pytest.raises(SettingsError, match="OTEL_EXPORTER_OTLP_PROTOCOL"), traced(ON, "pagewire-gateway"):
        pass


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(SettingsError, match=r"pagewire\[otel\]"), traced(ON, "pagewire-gateway"):
        pass
    assert not tracing.is_on()


def test_counts_are_sent_only_when_that_is_wanted(collector: Collector, counts: Counts) -> None:
    with traced(ON, "pagewire-gateway"):
        pass
    assert counts.taken == []
    with traced(COUNTED, "pagewire-gateway"):
        one_request()
    [taken] = counts.taken
    told = dict(taken.resource_metrics[0].resource.attributes)
    assert told == about(collector)
    assert told["service.instance.id"]  # two workers of one stage are two


def test_two_processes_are_told_apart(counts: Counts) -> None:
    for _ in range(2):
        with traced(COUNTED, "pagewire-answer"):
            pass
    one, other = (dict(taken.resource_metrics[0].resource.attributes) for taken in counts.taken)
    assert one["service.instance.id"] != other["service.instance.id"]


def test_counts_need_tracing() -> None:
    with (
        pytest.raises(SettingsError, match="PAGEWIRE_TRACING_METRICS"),
        traced(TracingSettings(tracing_metrics=True), "pagewire-gateway"),
    ):
        pass


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("OTEL_METRIC_EXPORT_INTERVAL", "soon"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "0"),
        ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "hush"),
    ],
)
def test_what_is_wrong_about_counts_is_named(monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(SettingsError, match="OTEL_") as caught, traced(COUNTED, "pagewire-gateway"):
        pass
    assert "hush" not in str(caught.value)
    assert not tracing.is_on()


def test_nothing_is_sent_where_the_sdk_is_disabled(monkeypatch: pytest.MonkeyPatch, counts: Counts) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    with traced(COUNTED, "pagewire-gateway"):
        pass
    assert counts.taken == []
