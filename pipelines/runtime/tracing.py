"""The functions by which the code makes spans. Until `switch_on` each of them only checks that tracing is off.

```
 HTTP ─▶ request ─▶ sending ─traceparent─▶ Kafka ─▶ following ─▶ processing ─┬▶ sending ─▶ Kafka ─▶ ...
                                                                             ├▶ database     Elasticsearch
                                                                             └▶ inference    a model
```
spans.py names the spans and their attributes. It is the only module that knows OpenTelemetry, and it is imported when
tracing is switched on. Never in a span: texts of visitors or editors, access keys, and ids by which an answer or a
conversation could be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from pipelines.runtime.record import Headers, Lane, Record
from pipelines.runtime.stage import StageGroup
from schemas.topics import Topic

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from pipelines.runtime.spans import DatabaseSpan, InferenceSpan, RequestSpan, SendingSpan, Spans


class _NoSpan:
    """Stands for any span while tracing is off."""

    trace_id = ""
    headers: Mapping[str, str] = {}

    def answered(self, *said: object) -> None: ...

    def confirmed(self, partition: int, offset: int) -> None: ...

    def first_word(self) -> None: ...


_NO_SPAN: AbstractContextManager[Any] = nullcontext(_NoSpan())


class _Switch:
    """One per process, like OpenTelemetry's own."""

    spans: Spans | None = None


def switch_on(provider: TracerProvider) -> None:
    """Send spans to this provider (adapters.telemetry), which need not be OpenTelemetry's global one."""
    from pipelines.runtime.spans import Spans

    _Switch.spans = Spans(provider)


def switch_off() -> None:
    _Switch.spans = None


def is_on() -> bool:
    return _Switch.spans is not None


def request(method: str, headers: Mapping[str, str]) -> AbstractContextManager[RequestSpan]:
    """Around a request to the gateway; continues the trace of its headers."""
    return _NO_SPAN if _Switch.spans is None else _Switch.spans.request(method, headers)


def following(record: Record) -> AbstractContextManager[None]:
    """Around all work on a record, with its waits: its spans belong to the sender's trace.

    In the bulk lane they are only linked with it: otherwise an import would be one trace with a span for every page and
    stage.
    """
    return _NO_SPAN if _Switch.spans is None else _Switch.spans.following(record)


def processing(record: Record, group: StageGroup, topic: Topic) -> AbstractContextManager[None]:
    """Around one try of a stage at a record of `topic`."""
    return _NO_SPAN if _Switch.spans is None else _Switch.spans.processing(record, group, topic)


def sending(topic: str, lane: Lane) -> AbstractContextManager[SendingSpan]:
    """Around a message for a stage, until the broker confirms it. `topic`: by the broker's name."""
    return _NO_SPAN if _Switch.spans is None else _Switch.spans.sending(topic, lane)


def carried() -> Headers:
    """The current trace as headers of a Kafka message."""
    return tuple((name, value.encode()) for name, value in http_headers().items())


def database(operation: str, collection: str, method: str) -> AbstractContextManager[DatabaseSpan]:
    """Around a request to Elasticsearch; it begins no trace of its own.

    Args:
        operation: Elasticsearch's name of the endpoint, `search`.
        collection: the index; empty for several or none.
    """
    return _NO_SPAN if _Switch.spans is None else _Switch.spans.database(operation, collection, method)


def http_headers() -> Mapping[str, str]:
    """The current trace as headers of an HTTP request."""
    return _NoSpan.headers if _Switch.spans is None else _Switch.spans.http_headers()


def inference(
    operation: str, model: str, server: str, max_tokens: int | None = None, temperature: float | None = None
) -> AbstractContextManager[InferenceSpan]:
    """Around a call of a model.

    Args:
        operation: `chat` or `embeddings`.
        server: its URL; empty: the model runs in this process.
    """
    if _Switch.spans is None:
        return _NO_SPAN
    return _Switch.spans.inference(operation, model, server, max_tokens, temperature)


def exemplar() -> dict[str, str] | None:
    """The current trace as an exemplar of a metric, with OpenMetrics' usual labels; None if it is not sampled."""
    return None if _Switch.spans is None else _Switch.spans.exemplar()


def here() -> object:
    """The current context, as a caller of `shared` work."""
    return None if _Switch.spans is None else _Switch.spans.here()


def shared(callers: Iterable[object]) -> AbstractContextManager[None]:
    """Around work for several callers (`here`): part of the only caller's trace, or linked with all of them."""
    return _NO_SPAN if _Switch.spans is None else _Switch.spans.shared(callers)
