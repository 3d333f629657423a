"""Where spans go: by OTLP over HTTP to the collector that OpenTelemetry's own variables name (`OTEL_*`).

The SDK is the extra `otel`, imported only when tracing is switched on. Its provider is not made the global one: spans
of other libraries (with URLs, query strings, errors with visitors' words in them) are not exported.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from threading import Thread
from typing import TYPE_CHECKING
from uuid import uuid4

from pipelines.runtime.errors import SettingsError

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider

PROTOCOL = "http/protobuf"
LAST_SPANS = 5.0  # seconds for them to get out when the process ends; a collector that is away must not hold it up


ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


@contextmanager
def traced(service: str) -> Iterator[None]:
    """Export the spans of this process meanwhile, if a variable names a collector.

    Args:
        service: the service's name where OTEL_SERVICE_NAME is not set.

    Raises:
        SettingsError: the extra is not installed, or a variable is wrong.
    """
    named = next((name for name in ENDPOINTS if os.environ.get(name)), None)
    if named is None:
        yield
        return
    from pipelines.runtime import tracing

    _check()
    try:
        provider = _provider(_resource(service))
    except ImportError as err:
        raise SettingsError(
            f"{named}: OpenTelemetry's SDK is not installed: `pip install 'pagewire[otel]'`, or leave the variable out"
        ) from err
    except (ValueError, OSError) as err:  # a wrong variable, or a missing file that one names
        raise SettingsError(f"OTEL_*: {err}") from err
    tracing.switch_on(provider)
    try:
        yield
    finally:
        tracing.switch_off()
        # Its own limit is 30 seconds, longer than a supervisor waits before a kill.
        ending = Thread(target=provider.shutdown, name="last spans", daemon=True)
        ending.start()
        ending.join(LAST_SPANS)


def _check() -> None:
    """What the libraries would pass over, or log with a key in it."""
    protocols = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")  # the first that is set counts
    wanted = next((value for name in protocols if (value := os.environ.get(name))), PROTOCOL)
    if wanted != PROTOCOL:
        raise SettingsError(f"OTEL_EXPORTER_OTLP_PROTOCOL: must be {PROTOCOL}, not {wanted!r}")
    for name in ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"):
        if any("=" not in one for one in os.environ.get(name, "").split(",") if one.strip()):
            raise SettingsError(f"{name}: must be NAME=VALUE, several with commas between them")


def _resource(service: str) -> Resource:
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource

    about = {
        "service.name": service,
        "service.namespace": "pagewire",
        "service.version": version("pagewire"),
        "service.instance.id": str(uuid4()),  # two workers of a stage are two
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
