"""Traces, as the code asks for them; off until `switch_on`, and then each of these is one check that does nothing.

```
 HTTP ─▶ request ─▶ sending ─traceparent─▶ Kafka ─▶ following ─▶ processing ─┬▶ sending ─▶ Kafka ─▶ ...
                                                                             ├▶ database     Elasticsearch
                                                                             └▶ inference    a model
```
What a span is called and what it says is in spans.py beside this, the only place that knows OpenTelemetry, and which is
imported when tracing is switched on. Never in a span: what anybody wrote, keys of access, ids by which an answer or a
conversation could be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol

from pipelines.runtime.record import Headers, Lane, Record
from pipelines.runtime.stages import StageGroup
from schemas.answer import Usage
from schemas.topics import Topic

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from pipelines.runtime.spans import Spans


class Request(Protocol):
    """A request to the gateway."""

    @property
    def trace_id(self) -> str:
        """32 hex digits; empty where nothing is traced."""
        ...

    def answered(self, route: str, status: int, site: str) -> None:
        """`route`: as a template, without its values; empty where none fits."""
        ...


class Sending(Protocol):
    """A message on its way to Kafka."""

    def confirmed(self, partition: int, offset: int) -> None: ...


class Database(Protocol):
    """A request to Elasticsearch."""

    def answered(self, status: int, host: str, port: int) -> None: ...


class Inference(Protocol):
    """A call of a model. It is nobody's parent, so it may stay open while a generator waits."""

    @property
    def headers(self) -> Mapping[str, str]:
        """What tells the model's server of the trace."""
        ...

    def first_word(self) -> None:
        """May be called for every word."""
        ...

    def answered(self, usage: Usage, finish: str) -> None:
        """`finish`: why the model stopped, in its server's words; empty: nothing was said of it."""
        ...


class _Unseen:
    """What all of them are while tracing is off."""

    trace_id = ""
    headers: Mapping[str, str] = {}

    def answered(self, *said: object) -> None: ...

    def confirmed(self, partition: int, offset: int) -> None: ...

    def first_word(self) -> None: ...


_UNSEEN: AbstractContextManager[Any] = nullcontext(_Unseen())


class _Switch:
    """One per process, as OpenTelemetry's own."""

    spans: Spans | None = None


def switch_on(provider: TracerProvider) -> None:
    """From now on spans go to this provider (adapters.telemetry), which need not be OpenTelemetry's global one."""
    from pipelines.runtime.spans import Spans

    _Switch.spans = Spans(provider)


def switch_off() -> None:
    _Switch.spans = None


def is_on() -> bool:
    return _Switch.spans is not None


def request(method: str, headers: Mapping[str, str]) -> AbstractContextManager[Request]:
    """Around a request to the gateway; it goes on with the trace that its headers name."""
    return _UNSEEN if _Switch.spans is None else _Switch.spans.request(method, headers)


def following(record: Record) -> AbstractContextManager[None]:
    """Around all that is done about a record, its waits included: what is traced in it belongs to the sender's trace.

    In the bulk lane it is only linked with it: an import would else be one trace with a span for every page and stage.
    """
    return _UNSEEN if _Switch.spans is None else _Switch.spans.following(record)


def processing(record: Record, group: StageGroup, topic: Topic) -> AbstractContextManager[None]:
    """Around one try of a stage at a record of `topic`."""
    return _UNSEEN if _Switch.spans is None else _Switch.spans.processing(record, group, topic)


def sending(topic: str, lane: Lane) -> AbstractContextManager[Sending]:
    """Around a message for a stage, until the broker has it. `topic`: by the broker's name."""
    return _UNSEEN if _Switch.spans is None else _Switch.spans.sending(topic, lane)


def carried() -> Headers:
    """The trace at hand as headers of a Kafka message."""
    return () if _Switch.spans is None else _Switch.spans.carried()


def database(operation: str, collection: str, method: str) -> AbstractContextManager[Database]:
    """Around a request to Elasticsearch; outside of any trace it is none of its own.

    Args:
        operation: Elasticsearch's name of the endpoint, `search`.
        collection: the index; empty where it is several or none.
    """
    return _UNSEEN if _Switch.spans is None else _Switch.spans.database(operation, collection, method)


def http_headers() -> Mapping[str, str]:
    """The trace at hand as headers of an HTTP request."""
    return _Unseen.headers if _Switch.spans is None else _Switch.spans.http_headers()


def inference(
    operation: str, model: str, server: str, max_tokens: int | None = None, temperature: float | None = None
) -> AbstractContextManager[Inference]:
    """Around a call of a model.

    Args:
        operation: `chat` or `embeddings`.
        server: its URL; empty: it runs in this process.
    """
    if _Switch.spans is None:
        return _UNSEEN
    return _Switch.spans.inference(operation, model, server, max_tokens, temperature)


def exemplar() -> dict[str, str] | None:
    """The trace at hand as an exemplar of what is counted, if its spans are kept: labels by OpenMetrics' custom."""
    return None if _Switch.spans is None else _Switch.spans.exemplar()


def here() -> object:
    """Who asks for a piece of work that several share; for `shared`."""
    return None if _Switch.spans is None else _Switch.spans.here()


def shared(asked: Iterable[object]) -> AbstractContextManager[None]:
    """Around work that several have asked for (`here`): a part of the one who did, or linked with all of them."""
    return _UNSEEN if _Switch.spans is None else _Switch.spans.shared(asked)
