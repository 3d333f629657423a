"""Tracing is switched on by the address of a collector, and by nothing else; what it lacks is named at the start."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http import trace_exporter
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from adapters.telemetry import traced
from pipelines.runtime import tracing
from pipelines.runtime.errors import SettingsError


class Collector(SpanExporter):
    """In place of what sends spans: keeps them."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.spans += spans
        return SpanExportResult.SUCCESS


@pytest.fixture(autouse=True)
def collector(monkeypatch: pytest.MonkeyPatch) -> Collector:
    for name in ("OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES", "OTEL_TRACES_SAMPLER", "OTEL_SDK_DISABLED"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
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


def test_it_is_off_where_no_collector_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT")
    with traced("pagewire-gateway"):
        assert not tracing.is_on()


def test_what_has_ended_is_sent_before_the_process_ends(collector: Collector) -> None:
    with traced("pagewire-gateway"):
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
    with traced("pagewire-gateway"):
        one_request()
    assert about(collector)["service.name"] == "town"


@pytest.mark.parametrize(("name", "value"), [("OTEL_TRACES_SAMPLER", "always_off"), ("OTEL_SDK_DISABLED", "true")])
def test_the_usual_variables_say_how_many(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with traced("pagewire-gateway"):
        one_request()
    assert collector.spans == []


def test_a_collectors_key_with_a_typo_is_told_to_nobody(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization: Bearer hush")
    with pytest.raises(SettingsError, match="OTEL_EXPORTER_OTLP_HEADERS") as caught, traced("pagewire-gateway"):
        pass
    assert "hush" not in str(caught.value) + caplog.text


def test_another_protocol_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    with pytest.raises(SettingsError, match="OTEL_EXPORTER_OTLP_PROTOCOL"), traced("pagewire-gateway"):
        pass


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(SettingsError, match=r"pagewire\[otel\]"), traced("pagewire-gateway"):
        pass
    assert not tracing.is_on()
