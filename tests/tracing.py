"""Traces in tests: spans are kept in memory and shown as a tree."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, ParentBased

from pipelines.runtime import tracing


class Seen:
    """The spans that have ended."""

    def __init__(self, exporter: InMemorySpanExporter) -> None:
        self._exporter = exporter

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        return self._exporter.get_finished_spans()

    @property
    def names(self) -> list[str]:
        return [span.name for span in self.spans]

    def one(self, name: str) -> ReadableSpan:
        [found] = [span for span in self.spans if span.name == name]
        return found

    def path(self, name: str) -> list[str]:
        """From the first span of its trace that was seen here down to this one."""
        by_id = {span.context.span_id: span for span in self.spans if span.context}
        span: ReadableSpan | None = self.one(name)
        names: list[str] = []
        while span is not None:
            names.insert(0, span.name)
            span = by_id.get(span.parent.span_id) if span.parent else None
        return names


@contextmanager
def traced() -> Iterator[Seen]:
    """Tracing is on, whatever the environment says of it."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(sampler=ParentBased(ALWAYS_ON), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracing.switch_on(provider)
    try:
        yield Seen(exporter)
    finally:
        tracing.switch_off()
        provider.shutdown()
