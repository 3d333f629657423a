"""Spans by OpenTelemetry's API and its semantic conventions for HTTP, messaging, databases and generative AI.

All attributes of spans are set here. Errors are named by their code: their messages may quote a visitor's words.
https://opentelemetry.io/docs/specs/semconv/
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from time import monotonic
from urllib.parse import urlsplit

from opentelemetry.context import Context, attach, create_key, detach, get_value, set_value
from opentelemetry.trace import (
    INVALID_SPAN,
    Link,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TracerProvider,
    format_span_id,
    format_trace_id,
    get_current_span,
    set_span_in_context,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import AttributeValue

from pipelines.runtime import metrics
from pipelines.runtime.errors import PagewireError
from pipelines.runtime.record import Lane, Record
from pipelines.runtime.stage import StageGroup
from schemas.answer import Usage
from schemas.keys import page_of_part, parse_page_key
from schemas.topics import Topic

# OTEL_PROPAGATORS is ignored: strangers' baggage would travel through the bus to the model's server.
_W3C = TraceContextTextMapPropagator()
LONGEST = 512  # characters of either header, which W3C Trace Context requires to pass on
# https://www.w3.org/TR/trace-context/#tracestate-header. Checked here, because the library logs a malformed header, and
# our logs hold no strangers' words.
_KEY = r"(?:[a-z][-_*/a-z0-9]{0,255}|[a-z0-9][-_*/a-z0-9]{0,240}@[a-z][-_*/a-z0-9]{0,13})"
_MEMBER = rf"{_KEY}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{{0,255}}[\x21-\x2b\x2d-\x3c\x3e-\x7e]"
_TRACESTATE = re.compile(rf"[ \t]*{_MEMBER}[ \t]*(,[ \t]*{_MEMBER}[ \t]*){{0,31}}")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
# Elasticsearch: not found, and a version conflict. Both are answers here, no errors.
_EXPECTED = frozenset({404, 409})
_LINKS = create_key("pagewire-links")  # of spans that begin in this context, instead of a parent


class RequestSpan:
    def __init__(self, span: Span, method: str) -> None:
        self._span = span
        self._method = method

    @property
    def trace_id(self) -> str:
        known = self._span.get_span_context()
        return format_trace_id(known.trace_id) if known.is_valid else ""

    def answered(self, route: str, status: int, site: str) -> None:
        if route:
            self._span.update_name(f"{self._method} {route}")
            self._span.set_attribute("http.route", route)
        if site:
            self._span.set_attribute("pagewire.site", site)
        self._span.set_attribute("http.response.status_code", status)
        if status >= 500:
            _failed(self._span, str(status))


class SendingSpan:
    def __init__(self, span: Span) -> None:
        self._span = span

    def confirmed(self, partition: int, offset: int) -> None:
        self._span.set_attribute("messaging.destination.partition.id", str(partition))
        self._span.set_attribute("messaging.kafka.offset", offset)


class DatabaseSpan:
    def __init__(self, span: Span) -> None:
        self._span = span
        self.has_status = False  # whether an HTTP status was set

    def answered(self, status: int, host: str, port: int) -> None:
        self._span.set_attribute("server.address", host)
        self._span.set_attribute("server.port", port)
        self._span.set_attribute("db.response.status_code", str(status))
        self.has_status = True
        if status >= 400 and status not in _EXPECTED:
            _failed(self._span, str(status))


class InferenceSpan:
    """Also counts the call in metrics of the same names; `about`: operation, provider, requested model."""

    def __init__(self, span: Span, headers: Mapping[str, str], about: tuple[str, str, str]) -> None:
        self._span = span
        self.headers = headers
        self._about = about
        self._begun = monotonic()
        self._spoke = False

    def first_word(self) -> None:
        if not self._spoke:
            self._spoke = True
            waited = monotonic() - self._begun
            self._span.set_attribute("gen_ai.response.time_to_first_chunk", waited)
            metrics.CALL_FIRST_CHUNK_SECONDS.labels(*self._about).observe(waited, _exemplar(self._span))

    def answered(self, usage: Usage, finish: str) -> None:
        if usage.model:
            self._span.set_attribute("gen_ai.response.model", usage.model)
        if usage.prompt_tokens or usage.completion_tokens:
            for kind, tokens in (("input", usage.prompt_tokens), ("output", usage.completion_tokens)):
                self._span.set_attribute(f"gen_ai.usage.{kind}_tokens", tokens)
                metrics.CALL_TOKENS.labels(*self._about, kind).observe(tokens, _exemplar(self._span))
        if finish:
            self._span.set_attribute("gen_ai.response.finish_reasons", (finish,))

    def ended(self, error: str) -> None:
        """`error`: its code; empty without one."""
        metrics.CALL_SECONDS.labels(*self._about, error).observe(monotonic() - self._begun, _exemplar(self._span))


class Spans:
    """Makes the spans of pipelines.runtime.tracing."""

    def __init__(self, provider: TracerProvider) -> None:
        self._tracer = provider.get_tracer("pagewire")

    @contextmanager
    def request(self, method: str, headers: Mapping[str, str]) -> Iterator[RequestSpan]:
        method = method if method in _METHODS else "HTTP"
        span = self._tracer.start_span(
            method,
            _extract(headers.get("traceparent"), headers.get("tracestate")),
            SpanKind.SERVER,
            {"http.request.method": method if method in _METHODS else "_OTHER"},
        )
        with _current(span):
            yield RequestSpan(span, method)

    @contextmanager
    def following(self, record: Record) -> Iterator[None]:
        sender = _extract(_text(record, "traceparent"), _text(record, "tracestate"))
        with _within(_linked([sender]) if record.lane == "bulk" else sender):
            yield

    @contextmanager
    def processing(self, record: Record, group: StageGroup, topic: Topic) -> Iterator[None]:
        about: dict[str, AttributeValue] = {
            "messaging.system": "kafka",
            "messaging.operation.name": "process",
            "messaging.operation.type": "process",
            "messaging.destination.name": record.topic,
            "messaging.destination.partition.id": str(record.partition),
            "messaging.consumer.group.name": group.name(record.topic.removesuffix(topic.name)),
            "messaging.kafka.offset": record.offset,
            "pagewire.stage": group.stage,
            "pagewire.lane": record.lane,
            "pagewire.attempt": record.attempt,
        }
        span = self._start(f"process {record.topic}", SpanKind.CONSUMER, about | _page(record))
        # A trace of its own (bulk), or a message without one: log lines have the other id.
        if (known := record.trace_id) != format_trace_id(span.get_span_context().trace_id):
            span.set_attribute("pagewire.log_trace_id", known)
        with _current(span):
            yield

    @contextmanager
    def sending(self, topic: str, lane: Lane) -> Iterator[SendingSpan]:
        if lane == "bulk":  # one request brings thousands, so their processing only links with it
            yield SendingSpan(INVALID_SPAN)
            return
        about: dict[str, AttributeValue] = {
            "messaging.system": "kafka",
            "messaging.operation.name": "send",
            "messaging.operation.type": "send",
            "messaging.destination.name": topic,
        }
        span = self._start(f"send {topic}", SpanKind.PRODUCER, about)
        with _current(span):
            yield SendingSpan(span)

    def http_headers(self) -> dict[str, str]:
        return _headers(None)

    @contextmanager
    def database(self, operation: str, collection: str, method: str) -> Iterator[DatabaseSpan]:
        if not _in_a_trace():
            yield DatabaseSpan(INVALID_SPAN)
            return
        about: dict[str, AttributeValue] = {
            "db.system.name": "elasticsearch",
            "db.operation.name": operation,
            "http.request.method": method,
        }
        if collection:
            about["db.collection.name"] = collection
        span = self._start(f"{operation} {collection}".strip(), SpanKind.CLIENT, about)
        request = DatabaseSpan(span)
        with _current(span, lambda: request.has_status):
            yield request

    @contextmanager
    def inference(
        self, operation: str, model: str, server: str, max_tokens: int | None, temperature: float | None
    ) -> Iterator[InferenceSpan]:
        about: dict[str, AttributeValue] = {"gen_ai.operation.name": operation, "gen_ai.request.model": model}
        provider = "openai" if server else ""  # the interface; the real provider is unknown
        if server:
            about |= {"gen_ai.provider.name": provider} | _address(server)
        if max_tokens is not None:
            about["gen_ai.request.max_tokens"] = max_tokens
        if temperature is not None:
            about["gen_ai.request.temperature"] = temperature
        kind = SpanKind.CLIENT if server else SpanKind.INTERNAL
        span = self._start(f"{operation} {model}", kind, about) if _in_a_trace() else INVALID_SPAN
        # Never the current span: a generator would leave it in its caller's context between two words.
        call = InferenceSpan(span, _headers(set_span_in_context(span, Context())), (operation, provider, model))
        with _ended(span, ended=call.ended):
            yield call

    def exemplar(self) -> dict[str, str] | None:
        return _exemplar(get_current_span())

    def here(self) -> Context | None:
        return set_span_in_context(get_current_span(), Context()) if _in_a_trace() else None

    @contextmanager
    def shared(self, asked: Iterable[object]) -> Iterator[None]:
        given = [each for each in asked if isinstance(each, Context)]
        different = list({get_current_span(each).get_span_context().span_id: each for each in given}.values())
        with _within(different[0] if len(different) == 1 else _linked(different)):
            yield

    def _start(self, name: str, kind: SpanKind, about: Mapping[str, AttributeValue]) -> Span:
        links = get_value(_LINKS)
        return self._tracer.start_span(name, None, kind, about, links if isinstance(links, tuple) else ())


def _extract(traceparent: str | None, tracestate: str | None) -> Context:
    """The context of a trace's headers; malformed ones begin a new trace."""
    carrier = {}
    if traceparent and len(traceparent) <= LONGEST:
        carrier["traceparent"] = traceparent
    if tracestate and len(tracestate) <= LONGEST and _TRACESTATE.fullmatch(tracestate):
        carrier["tracestate"] = tracestate
    return _W3C.extract(carrier, Context())


def _text(record: Record, name: str) -> str | None:
    value = record.header(name)
    return None if value is None else value.decode("ascii", "replace")


def _headers(context: Context | None) -> dict[str, str]:
    carrier: dict[str, str] = {}
    _W3C.inject(carrier, context)
    return carrier


def _linked(contexts: Iterable[Context]) -> Context:
    known: list[SpanContext] = [get_current_span(each).get_span_context() for each in contexts]
    return set_value(_LINKS, tuple(Link(each) for each in known if each.is_valid), Context())


def _in_a_trace() -> bool:
    """Whether there is a current span; periodic requests outside of one would make endless traces of a single span."""
    return bool(get_value(_LINKS)) or get_current_span().get_span_context().is_valid


def _page(record: Record) -> dict[str, AttributeValue]:
    try:
        key = page_of_part((record.key or b"").decode())
        return {"pagewire.site": parse_page_key(key).site, "pagewire.page": key}
    except ValueError:  # the id of a conversation, which is private
        return {}


def _address(server: str) -> dict[str, AttributeValue]:
    try:
        url = urlsplit(server)
        port = url.port or (443 if url.scheme == "https" else 80)
    except ValueError:
        return {}
    return {"server.address": url.hostname or "", "server.port": port}


@contextmanager
def _within(context: Context) -> Iterator[None]:
    token = attach(context)
    try:
        yield
    finally:
        detach(token)


@contextmanager
def _current(span: Span, has_status: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Make it the parent of spans that begin inside, which do not inherit its links."""
    with _ended(span, has_status), _within(set_value(_LINKS, (), set_span_in_context(span))):
        yield


@contextmanager
def _ended(
    span: Span, has_status: Callable[[], bool] = lambda: False, ended: Callable[[str], None] = lambda error: None
) -> Iterator[None]:
    """End the span. `has_status`: whether the span has its outcome. `ended` receives the error's code, or nothing."""
    code = ""
    try:
        yield
    except GeneratorExit:  # the caller wants no more
        raise
    except BaseException as err:
        code = err.code if isinstance(err, PagewireError) else type(err).__name__
        if not has_status():
            _failed(span, code)
        raise
    finally:
        span.end()
        ended(code)


def _exemplar(span: Span) -> dict[str, str] | None:
    """None without a trace, or if it is not sampled."""
    known = span.get_span_context()
    if not (known.is_valid and known.trace_flags.sampled):
        return None
    return {"trace_id": format_trace_id(known.trace_id), "span_id": format_span_id(known.span_id)}


def _failed(span: Span, code: str) -> None:
    span.set_attribute("error.type", code)
    span.set_status(Status(StatusCode.ERROR))
