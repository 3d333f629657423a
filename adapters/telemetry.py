"""Exports spans and metrics by OTLP over HTTP to the collector that OpenTelemetry's variables (`OTEL_*`) name.

The SDK is the extra `otel`, imported only when tracing is switched on. Its provider is not made the global one: spans
of other libraries (with URLs, query strings, errors with visitors' words in them) are not exported.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING
from uuid import uuid4

from pydantic import Field

from pipelines.runtime.errors import SettingsError
from pipelines.runtime.settings import SettingsGroup

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider

    from adapters.otlp_metrics import SentMetrics

PROTOCOL = "http/protobuf"
INTERVAL = "OTEL_METRIC_EXPORT_INTERVAL"  # milliseconds
DEFAULT_INTERVAL = 60_000  # milliseconds, OpenTelemetry's default
LAST_SPANS = 5.0  # seconds for the last export when the process ends, whether the collector answers or not


class TracingSettings(SettingsGroup):
    """Traces."""

    tracing: bool = Field(
        default=False,
        description="Whether the gateway and the workers send traces by OpenTelemetry (docs/howto/traces.md); needs "
        "the extra `otel`. Where to, and how many, the usual `OTEL_*` variables say.",
    )
    tracing_metrics: bool = Field(
        default=False,
        description="With `tracing`: whether counters and histograms are sent to the collector, too, every minute. "
        "Prometheus reads the same ones without it.",
    )


@contextmanager
def traced(settings: TracingSettings, service: str) -> Iterator[None]:
    """Export the spans of this process meanwhile, if tracing is switched on.

    Args:
        service: the service's name where OTEL_SERVICE_NAME is not set.

    Raises:
        SettingsError: the extra is not installed, or a variable is wrong.
    """
    if not settings.tracing:
        if settings.tracing_metrics:
            raise SettingsError("tracing_metrics (PAGEWIRE_TRACING_METRICS): needs tracing (PAGEWIRE_TRACING)")
        yield
        return
    from pipelines.runtime import tracing

    _check("TRACES")
    if settings.tracing_metrics:
        _check("METRICS")
    try:
        resource = _resource(service)
        provider = _provider(resource)
        metrics = _metrics(resource) if settings.tracing_metrics else None
    except ImportError as err:
        raise SettingsError(
            "tracing (PAGEWIRE_TRACING): OpenTelemetry's SDK is not installed: `pip install 'pagewire[otel]'`"
        ) from err
    except (ValueError, OSError) as err:  # a wrong variable, or a missing file that one names
        raise SettingsError(f"OTEL_*: {err}") from err
    tracing.switch_on(provider)
    try:
        yield
    finally:
        tracing.switch_off()
        _shut_down(provider.shutdown, *([metrics.shutdown] if metrics is not None else []))


def _shut_down(*shutdowns: Callable[[], None]) -> None:
    """Call them in parallel, with a limit: their own is 30 seconds, longer than a supervisor waits before a kill."""
    ending = [Thread(target=shutdown, name="last spans", daemon=True) for shutdown in shutdowns]
    until = monotonic() + LAST_SPANS
    for thread in ending:
        thread.start()
    for thread in ending:
        thread.join(max(0.0, until - monotonic()))


def _check(signal: str) -> None:
    """Check variables that the SDK ignores when wrong, or logs with a key in them. Raises: SettingsError."""
    protocols = (f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")  # the first that is set counts
    wanted = next((value for name in protocols if (value := os.environ.get(name))), PROTOCOL)
    if wanted != PROTOCOL:
        raise SettingsError(f"OTEL_EXPORTER_OTLP_PROTOCOL: must be {PROTOCOL}, not {wanted!r}")
    for name in ("OTEL_EXPORTER_OTLP_HEADERS", f"OTEL_EXPORTER_OTLP_{signal}_HEADERS"):
        if any("=" not in one for one in os.environ.get(name, "").split(",") if one.strip()):
            raise SettingsError(f"{name}: must be NAME=VALUE, several with commas between them")


def _resource(service: str) -> Resource:
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource

    about = {
        "service.name": service,
        "service.namespace": "pagewire",
        "service.version": version("pagewire"),
        "service.instance.id": str(uuid4()),  # keeps the counters of two workers of one stage apart
    }
    said = OTELResourceDetector().detect().attributes  # OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES
    return Resource.create({name: value for name, value in about.items() if name not in said})


def _provider(resource: Resource) -> TracerProvider:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


def _metrics(resource: Resource) -> SentMetrics | None:
    """None: OTEL_SDK_DISABLED switches the export off, as it does for spans."""
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from prometheus_client import REGISTRY

    from adapters.otlp_metrics import SentMetrics

    if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    every = os.environ.get(INTERVAL) or str(DEFAULT_INTERVAL)
    if not every.isdecimal() or int(every) == 0:
        raise SettingsError(f"{INTERVAL}: must be milliseconds, not {every!r}")
    return SentMetrics(OTLPMetricExporter(), REGISTRY, resource, int(every) / 1000)
