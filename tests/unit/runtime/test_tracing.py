"""Traces: a context goes through headers and comes back, malformed ones begin anew, and off means nothing at all."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode, format_span_id, format_trace_id

from pipelines.runtime import tracing
from pipelines.runtime.errors import Retryable
from pipelines.runtime.record import LANE_HEADER, TRACE_HEADER, Headers, Record
from pipelines.runtime.stage import StageGroup
from schemas.answer import Usage
from schemas.topics import CHANGES
from tests.tracing import Seen, traced

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"
CALLER = f"00-{TRACE}-{SPAN}-01"
BULK = (LANE_HEADER, b"bulk")
GROUP = StageGroup("chunk", "save")
PAGE = b"town:en:news%2F12"


@pytest.fixture
def seen() -> Iterator[Seen]:
    with traced() as seen:
        yield seen


def record(*headers: tuple[str, bytes | None], key: bytes = PAGE) -> Record:
    return Record("p.cms.changes", 1, 7, key, b"", headers)


def process(given: Record) -> Headers:
    """One try of a stage at it; what goes along with what it sends."""
    with tracing.following(given), tracing.processing(given, GROUP, CHANGES), tracing.sending("next", given.lane):
        return tracing.carried()


def context(span: ReadableSpan) -> tuple[str, str]:
    assert span.context
    return format_trace_id(span.context.trace_id), format_span_id(span.context.span_id)


def parent(span: ReadableSpan) -> str | None:
    return format_span_id(span.parent.span_id) if span.parent else None


def test_a_trace_goes_on_through_the_headers_of_a_message(seen: Seen) -> None:
    carried = dict(process(record(("traceparent", CALLER.encode()), ("tracestate", b"vendor=it-s,other=1"))))
    processed, sent = seen.one("process p.cms.changes"), seen.one("send next")
    assert (context(processed)[0], parent(processed)) == (TRACE, SPAN)
    assert parent(sent) == context(processed)[1]
    assert carried["traceparent"] == f"00-{TRACE}-{context(sent)[1]}-01".encode()
    assert carried["tracestate"] == b"vendor=it-s,other=1"
    assert (processed.kind, sent.kind) == (SpanKind.CONSUMER, SpanKind.PRODUCER)
    assert dict(processed.attributes or {}) == {
        "messaging.system": "kafka",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": "p.cms.changes",
        "messaging.destination.partition.id": "1",
        "messaging.consumer.group.name": "p.pagewire-chunk",
        "messaging.kafka.offset": 7,
        "pagewire.stage": "chunk",
        "pagewire.lane": "save",
        "pagewire.attempt": 1,
        "pagewire.site": "town",
        "pagewire.page": PAGE.decode(),
        "pagewire.log_trace_id": record().trace_id,
    }


def test_log_lines_are_found_by_the_trace_where_both_have_one_id(seen: Seen) -> None:
    process(record((TRACE_HEADER, TRACE.encode()), ("traceparent", CALLER.encode())))
    assert "pagewire.log_trace_id" not in (seen.one("process p.cms.changes").attributes or {})


def test_bulk_work_is_linked_with_its_sender_and_is_a_trace_of_its_own(seen: Seen) -> None:
    carried = dict(process(record(("traceparent", CALLER.encode()), BULK)))
    [processed] = seen.spans  # a message of many has no span for its sending
    assert processed.parent is None
    assert [format_span_id(link.context.span_id) for link in processed.links] == [SPAN]
    trace, span = context(processed)
    assert trace != TRACE
    assert list(carried) == ["traceparent"]
    assert (carried["traceparent"] or b"").startswith(f"00-{trace}-{span}-".encode())


def test_what_is_done_in_linked_work_is_a_part_of_it_and_not_linked_again(seen: Seen) -> None:
    given = record(("traceparent", CALLER.encode()), BULK)
    with tracing.following(given), tracing.processing(given, GROUP, CHANGES), tracing.database("get", "heads", "GET"):
        pass
    inner, outer = seen.one("get heads"), seen.one("process p.cms.changes")
    assert (parent(inner), list(inner.links)) == (context(outer)[1], [])


MALFORMED = [
    None,
    b"",
    b"nonsense",
    b"\xff\xfe" * 20,
    CALLER.upper().encode(),
    f"00-{'0' * 32}-{SPAN}-01".encode(),
    f"00-{TRACE}-{'0' * 16}-01".encode(),
    f"ff-{TRACE}-{SPAN}-01".encode(),
    f"{CALLER}-more".encode(),
    CALLER.encode() + b"\n\x00",
    b"01-" + CALLER.encode()[3:] + b"-" + b"x" * 10_000,
]


@pytest.mark.parametrize("lane", [(), (BULK,)], ids=["save", "bulk"])
@pytest.mark.parametrize("given", MALFORMED)
def test_a_malformed_context_begins_a_trace(seen: Seen, given: bytes | None, lane: Headers) -> None:
    process(record(("traceparent", given), ("tracestate", b"vendor=1"), *lane))
    processed = seen.one("process p.cms.changes")
    assert (processed.parent, list(processed.links)) == (None, [])
    assert context(processed)[0] != TRACE


@pytest.mark.parametrize("given", [b"no", b"a=1,,b=2", b"=1", b"a=\xff", b"9a=1", b"a=" + b"b" * 600, b"a=1,A=2", None])
def test_a_malformed_state_is_left_out_and_not_logged(
    seen: Seen, given: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        carried = dict(process(record(("traceparent", CALLER.encode()), ("tracestate", given))))
    assert list(carried) == ["traceparent"]
    assert parent(seen.one("process p.cms.changes")) == SPAN
    assert not [line for line in caplog.records if line.name.startswith("opentelemetry")]


@given(
    parent=st.none() | st.binary(max_size=80) | st.text(max_size=80).map(str.encode),
    state=st.none() | st.binary(max_size=80) | st.from_regex(r"\A[a-z]{1,3}=[a-z]{1,3}(,[a-z]=.)?\Z").map(str.encode),
    key=st.binary(max_size=20),
)
def test_no_header_takes_a_worker_down(parent: bytes | None, state: bytes | None, key: bytes) -> None:
    with traced() as seen:
        process(record(("traceparent", parent), ("tracestate", state), key=key))
        assert seen.names == ["send next", "process p.cms.changes"]


def test_the_last_of_two_headers_counts(seen: Seen) -> None:
    process(record(("traceparent", b"nonsense"), ("traceparent", CALLER.encode())))
    assert parent(seen.one("process p.cms.changes")) == SPAN


def test_a_failed_try_is_named_by_its_code_and_quotes_nothing(seen: Seen) -> None:
    with pytest.raises(Retryable), tracing.processing(record(), GROUP, CHANGES):
        raise Retryable("a visitor asked: where is my zebra?")
    with pytest.raises(KeyError), tracing.sending("next", "save"):
        raise KeyError("zebra")
    failed, broken = seen.spans
    assert (failed.status.status_code, broken.status.status_code) == (StatusCode.ERROR, StatusCode.ERROR)
    assert ((failed.attributes or {})["error.type"], (broken.attributes or {})["error.type"]) == (
        Retryable.code,
        "KeyError",
    )
    assert "zebra" not in failed.to_json() + broken.to_json()


def test_the_id_of_a_conversation_is_in_no_span(seen: Seen) -> None:
    process(record(key=b"conversation-1"))
    assert "conversation-1" not in seen.one("process p.cms.changes").to_json()


def test_a_request_goes_on_with_the_callers_trace(seen: Seen) -> None:
    with tracing.request("POST", {"traceparent": CALLER}) as request:
        assert request.trace_id == TRACE
        request.answered("/v1/sites/{site}/chat", 200, "town")
    span = seen.one("POST /v1/sites/{site}/chat")
    assert (parent(span), span.kind, span.status.status_code) == (SPAN, SpanKind.SERVER, StatusCode.UNSET)
    assert dict(span.attributes or {}) == {
        "http.request.method": "POST",
        "http.route": "/v1/sites/{site}/chat",
        "http.response.status_code": 200,
        "pagewire.site": "town",
    }


def test_a_strangers_method_and_path_are_in_no_span(seen: Seen) -> None:
    with tracing.request("ZEBRA", {}) as request:
        request.answered("", 503, "")
    span = seen.one("HTTP")
    assert "ZEBRA" not in span.to_json()
    assert span.status.status_code is StatusCode.ERROR


def test_a_model_call_says_what_it_cost_and_how_soon_it_spoke(seen: Seen) -> None:
    with tracing.request("POST", {"traceparent": CALLER}):
        with tracing.inference("chat", "small", "https://models.example:8443/v1", 200, 0.0) as call:
            call.first_word()
            call.first_word()
            call.answered(Usage(model="small-2", prompt_tokens=11, completion_tokens=7), "stop")
        with tracing.inference("embeddings", "lite", "") as local:
            assert local.headers
    span = seen.one("chat small")
    about = dict(span.attributes or {})
    assert call.headers == {"traceparent": f"00-{TRACE}-{context(span)[1]}-01"}
    assert 0 <= float(str(about.pop("gen_ai.response.time_to_first_chunk"))) < 60
    assert about == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "small",
        "gen_ai.request.max_tokens": 200,
        "gen_ai.request.temperature": 0.0,
        "gen_ai.response.model": "small-2",
        "gen_ai.usage.input_tokens": 11,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.response.finish_reasons": ("stop",),
        "server.address": "models.example",
        "server.port": 8443,
    }
    assert (span.kind, seen.one("embeddings lite").kind) == (SpanKind.CLIENT, SpanKind.INTERNAL)


async def test_a_generator_leaves_no_span_behind_in_its_callers_context(seen: Seen) -> None:
    async def words():  # type: ignore[no-untyped-def]
        with tracing.inference("chat", "small", "http://models.example"):
            yield "open"
            yield "daily"

    with tracing.request("POST", {}) as request:
        stream = words()
        assert await anext(stream) == "open"
        with tracing.sending("next", "save"):
            pass
        await asyncio.create_task(stream.aclose())  # from another context, as when a visitor leaves
    assert request.trace_id
    assert seen.path("send next") == ["POST", "send next"]
    assert seen.one("chat small").status.status_code is StatusCode.UNSET


def test_what_belongs_to_no_trace_is_not_told_of(seen: Seen) -> None:
    """The clock that is asked every minute would be a trace of one span, again and again."""
    with tracing.database("nodes.stats", "", "GET") as asked:
        asked.answered(200, "e1", 9200)
    with tracing.inference("embeddings", "lite", "") as call:
        assert call.headers == {}
    assert seen.spans == ()
    assert tracing.carried() == ()


@pytest.mark.parametrize(("status", "failed"), [(200, False), (404, False), (409, False), (400, True), (503, True)])
def test_what_is_not_there_is_an_answer_of_a_database(seen: Seen, status: int, failed: bool) -> None:
    def ask() -> None:
        with tracing.database("get", "pagewire-town", "GET") as asked:
            asked.answered(status, "e1", 9200)
            raise RuntimeError("as the client does")

    with tracing.request("GET", {}), pytest.raises(RuntimeError):
        ask()
    span = seen.one("get pagewire-town")
    assert (span.status.status_code is StatusCode.ERROR) == failed
    assert dict(span.attributes or {}) | {"error.type": ""} == {
        "db.system.name": "elasticsearch",
        "db.operation.name": "get",
        "db.collection.name": "pagewire-town",
        "db.response.status_code": str(status),
        "http.request.method": "GET",
        "server.address": "e1",
        "server.port": 9200,
        "error.type": "",
    }


def asker(seen: Seen, name: str) -> object:
    with tracing.request(name, {}):
        return tracing.here()


def bulk(*asked: object) -> None:
    with tracing.shared(asked), tracing.database("bulk", "", "PUT"):
        pass


def test_shared_work_belongs_to_the_one_who_asked_for_it(seen: Seen) -> None:
    one = asker(seen, "PUT")
    bulk(one, one, None)
    assert seen.path("bulk") == ["PUT", "bulk"]


def test_shared_work_is_linked_with_all_who_asked_for_it(seen: Seen) -> None:
    bulk(asker(seen, "PUT"), asker(seen, "DELETE"))
    span = seen.one("bulk")
    assert span.parent is None
    assert {link.context.span_id for link in span.links} == {
        seen.one(name).context.span_id  # type: ignore[union-attr]
        for name in ("PUT", "DELETE")
    }


def test_shared_work_that_nobody_traced_asked_for_is_not_told_of(seen: Seen) -> None:
    bulk(None, tracing.here())
    assert seen.spans == ()


def test_off_there_is_nothing() -> None:
    assert not tracing.is_on()
    given = record(("traceparent", CALLER.encode()))
    assert process(given) == ()
    assert (tracing.http_headers(), tracing.here()) == ({}, None)
    with tracing.request("POST", {"traceparent": CALLER}) as request, tracing.shared([None]):
        assert request.trace_id == ""
        request.answered("/", 200, "town")
    with tracing.inference("chat", "small", "http://models.example") as call:
        call.first_word()
        call.answered(Usage(), "stop")
        assert call.headers == {}
    with tracing.database("get", "x", "GET") as asked:
        asked.answered(200, "e1", 9200)


def test_an_error_goes_through_what_is_off() -> None:
    with pytest.raises(Retryable), tracing.following(record()), tracing.processing(record(), GROUP, CHANGES):
        raise Retryable("away")
