"""The wire contract: every message comes back as it went, and nothing else is taken for one."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pydantic import TypeAdapter, ValidationError

from schemas.answer import (
    Accepted,
    Answered,
    AnswerEvent,
    Citation,
    Done,
    Event,
    Failed,
    QuestionRephrased,
    Restart,
    SourcesFound,
    Token,
    Usage,
)
from schemas.base import MAX_REVISION, Message, WireError, language_tag, problems
from schemas.head import Head
from schemas.http import BulkLine, ChatRequest
from schemas.ingest import (
    Chunk,
    ChunkCounts,
    Chunker,
    ChunkUnit,
    EmbeddedChunk,
    Failure,
    PageChunks,
    PageEmbeddings,
    ReceiptEvent,
)
from schemas.page import Attachment, ChangeRef, PageChange, PageDocument, PageMeta
from schemas.query import MAX_QUESTION, Question, Rephrased, Retrieved, Source, Turn
from tests.asking import question, retrieved, source
from tests.making import NOON, change, parts_of

CHUNKER = Chunker(mode="content", size=1000, overlap=0.2, titled=True)
PAGE = PageDocument(
    id="news/12",
    lang="pt-BR",
    url="https://example.org/news/12?a=b#c",
    name="news",
    title="Ünïcödé 🏊 \u202eright to left",
    description="\x00 is a character like others in a text",
    keywords=("a", ""),
    content="<p>x</p>\r\n",
    revision=MAX_REVISION,
    changed_at=NOON,
    attachments=(Attachment(path="a.pdf", media_type="application/pdf"),),
    groups=(),
)
MESSAGES: list[Message] = [
    PageChange(
        op="upsert",
        site="town",
        lang="pt-BR",
        page_id="news/12",
        revision=0,
        accepted_at=NOON + timedelta(microseconds=1),
        source="push",
        page=PAGE,
    ),
    PageChange(op="delete", site="t", lang="en", page_id="a", revision=MAX_REVISION, accepted_at=NOON, source="import"),
    PageChunks(
        change=change(5),
        meta=PageMeta(title="Fees", url="/fees", groups=("staff",)),
        chunker=CHUNKER,
        chunks=(Chunk(field="title", ord=0, text="Fees"), Chunk(field="content", ord=0, text="")),
        notes=("one table was cut",),
    ),
    PageChunks(change=change(5, "delete"), meta=None, chunker=CHUNKER),
    ReceiptEvent(
        change=change(5),
        state="failed",
        at=NOON,
        chunks=ChunkCounts(total=3, embedded=1, reused=2, removed=4),
        error=Failure(stage="embed", reason="too odd"),
    ),
    question(history=(Turn(question="?", answer="!"),)).model_copy(update={"groups": ("staff",)}),
    Rephrased(request=question(), question="?", mode="keyword", timings_ms={"rephrase": 0.25}),
    retrieved(source(1, "text"), source(2, "more").model_copy(update={"cosine": -0.5, "cited": True})),
]
EVENTS: list[Event] = [
    Accepted(request_id="request-0001", conversation_id="conversation-1"),
    QuestionRephrased(question="?", mode="semantic"),
    SourcesFound(grade=5, sources=(source(1, "text"),)),
    Token(text="\n"),
    Citation(n=1, start=0, end=4, quote="text"),
    Answered(text="", citations=(), sources=(), extractive=True, usage=Usage(model="m"), timings_ms={"answer": 1.5}),
    Done(),
    Failed(code="timeout", message="Too slow."),
    Restart(attempt=2),
]
EVERY = MESSAGES + [
    AnswerEvent(request_id="request-0001", site="town", attempt=2, seq=3, event=event) for event in EVENTS
]
names = [f"{type(m).__name__}-{m.event.type}" if isinstance(m, AnswerEvent) else type(m).__name__ for m in EVERY]


@pytest.mark.parametrize("message", EVERY, ids=names)
def test_a_message_comes_back_as_it_went(message: Message) -> None:
    assert type(message).decode(message.encode()) == message


@pytest.mark.parametrize("message", EVERY, ids=names)
def test_another_version_is_refused(message: Message) -> None:
    assert json.loads(message.encode())["v"] == 1
    for version in (0, 2, "1.0", None):
        value = json.dumps(json.loads(message.encode()) | {"v": version}).encode()
        with pytest.raises(WireError, match=rf"not a {type(message).__name__} v1: v: "):
            type(message).decode(value)


@pytest.mark.parametrize("message", EVERY, ids=names)
def test_a_field_nobody_knows_is_refused_and_named_where_a_person_wrote_it(message: Message) -> None:
    value = json.dumps(json.loads(message.encode()) | {"surprise": "private"}).encode()
    with pytest.raises(WireError, match="surprise: Extra inputs") as caught:
        type(message).decode(value, strict=True)
    assert "private" not in str(caught.value)


@pytest.mark.parametrize("message", EVERY, ids=names)
def test_what_is_wrong_beside_a_field_nobody_knows_is_still_refused(message: Message) -> None:
    value = json.dumps(json.loads(message.encode()) | {"surprise": "private", "v": 2}).encode()
    with pytest.raises(WireError, match="v: ") as caught:
        type(message).decode(value)
    assert "surprise" not in str(caught.value)


@pytest.mark.parametrize(
    "value", [None, b"", b"{", b"[]", b"null", b'"text"', b"\xff", b'{"v":1}', b"{}" * 2, b"[" * 100_000]
)
@pytest.mark.parametrize("kind", sorted({type(m) for m in EVERY}, key=lambda kind: kind.__name__))
def test_bytes_that_are_no_message_are_refused_in_few_words(kind: type[Message], value: bytes | None) -> None:
    with pytest.raises(WireError, match=kind.__name__) as caught:
        kind.decode(value)
    assert len(str(caught.value)) < 1_000


def test_a_message_does_not_change() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        question().lang = "de"  # type: ignore[misc]


def test_complaints_name_the_field_and_never_the_content() -> None:
    with pytest.raises(ValidationError) as caught:
        PageDocument.model_validate({"id": "a", "keywords": ["fine", 5], "content": {"private": "private"}})
    assert problems(caught.value) == (
        "keywords.1: Input should be a valid string; content: Input should be a valid string"
    )


@pytest.mark.parametrize("field", ["id", "title", "content", "keywords"])
def test_a_lone_surrogate_is_refused_as_json(field: str) -> None:
    value = '["\\ud800"]' if field == "keywords" else '"\\ud800"'
    fields = {"id": '"a"'} | {field: value}
    with pytest.raises(ValidationError):
        PageDocument.model_validate_json("{" + ", ".join(f'"{k}": {v}' for k, v in fields.items()) + "}")


@pytest.mark.parametrize("id", ["", "a\x00", "a\nb", "\x7f", "x" * 257, "\ud800"])
def test_ids_that_do_not_travel_are_refused(id: str) -> None:
    with pytest.raises(ValidationError):
        PageDocument(id=id)


@pytest.mark.parametrize("id", ["a", "ü/ß?#:%", "🏊" * 256, " ", "..", "\u202e"])
def test_ids_of_any_cms_are_taken(id: str) -> None:
    assert PageDocument(id=id).id == id


@pytest.mark.parametrize("lang", ["", "german", "d", "de-", "de_", "de\n", "de AT", "de-österr"])
def test_what_is_no_language_tag_is_refused(lang: str) -> None:
    for give in (lambda: PageDocument(id="a", lang=lang), lambda: ChatRequest(question="When?", lang=lang)):
        with pytest.raises(ValidationError):
            give()
    assert language_tag(lang) == lang


@pytest.mark.parametrize(
    ("written", "tag"),
    [
        ("de", "de"),
        ("DE", "de"),
        ("De", "de"),
        ("en_US", "en-US"),
        ("en_us", "en-US"),
        ("EN-us", "en-US"),
        ("zh_hant_tw", "zh-Hant-TW"),
        ("sr-Cyrl", "sr-Cyrl"),
        ("GSW_CH", "gsw-CH"),
        ("es_419", "es-419"),
        ("de_DE_FORMAL", "de-DE-formal"),
        ("EN-US-X-TWAIN", "en-US-x-twain"),
        ("de-DE-u-co-phonebk", "de-DE-u-co-phonebk"),
        # What could be kept before is left alone: it stands in the keys of pages.
        ("pt-br", "pt-br"),
        ("zh-hans", "zh-hans"),
    ],
)
def test_a_language_is_understood_however_clients_write_it(written: str, tag: str) -> None:
    page = PageDocument(id="a", lang=written)
    assert page.lang == ChatRequest(question="When?", lang=written).lang == tag
    # It fits the messages as well, and stays what it is on the way through them.
    change = PageChange(
        op="upsert", site="t", lang=tag, page_id="a", revision=1, accepted_at=NOON, source="push", page=page
    )
    assert PageChange.decode(change.encode()) == change


@pytest.mark.parametrize("site", ["", "Town", "-town", "a" * 64, "town/x", "town.receipts", "*"])
def test_what_is_no_site_is_refused(site: str) -> None:
    """A site is part of an index name."""
    with pytest.raises(ValidationError):
        change(site=site)


@pytest.mark.parametrize("revision", [-1, MAX_REVISION + 1, True, False])
def test_revisions_have_their_range(revision: int) -> None:
    with pytest.raises(ValidationError):
        PageDocument(id="a", revision=revision)


def test_times_without_a_zone_are_refused() -> None:
    with pytest.raises(ValidationError, match="timezone"):
        ChangeRef.model_validate(change().model_dump() | {"accepted_at": NOON.replace(tzinfo=None)})


def test_an_upsert_carries_a_page_and_a_delete_carries_none() -> None:
    upsert, delete = MESSAGES[:2]
    for fields in (upsert.model_dump() | {"page": None}, delete.model_dump() | {"page": PAGE}):
        with pytest.raises(ValidationError, match="an upsert carries a page, a delete carries none"):
            PageChange.model_validate(fields)


@pytest.mark.parametrize("given", [{}, {"url": "u", "path": "p"}, {"url": "u", "data_base64": "", "path": "p"}])
def test_an_attachment_has_one_source(given: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="exactly one of url, path, data_base64"):
        Attachment.model_validate(given)


@pytest.mark.parametrize(
    ("asked", "kept"), [("  When?  ", "When?"), ("x" * MAX_QUESTION, "x" * MAX_QUESTION), ("🏊", "🏊")]
)
def test_a_question_is_stripped(asked: str, kept: str) -> None:
    assert ChatRequest(question=asked).question == kept


@pytest.mark.parametrize("asked", ["", "  \n", "x" * (MAX_QUESTION + 1), "x" * 100_000])
def test_no_question_and_one_without_end_are_refused(asked: str) -> None:
    with pytest.raises(ValidationError, match="question"):
        ChatRequest(question=asked)


def test_a_bulk_line_is_an_upsert_unless_it_says_otherwise() -> None:
    assert BulkLine.model_validate_json('{"page": {"id": "a"}}').op == "upsert"


def test_an_event_is_known_by_its_type() -> None:
    adapter: TypeAdapter[Event] = TypeAdapter(Event)
    assert adapter.validate_json('{"type": "token", "text": "a"}') == Token(text="a")
    for wrong in ('{"type": "tokens", "text": "a"}', '{"text": "a"}', '{"type": "done", "text": "a"}'):
        with pytest.raises(ValidationError):
            adapter.validate_json(wrong)


def test_only_done_is_the_end() -> None:
    ends = [e.type for e in EVENTS if AnswerEvent(request_id="request-0001", seq=0, event=e).final]
    assert ends == ["done"]


floats = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(vector=hnp.arrays(np.float32, st.integers(1, 50), elements=floats))
def test_vectors_come_back_bit_for_bit(vector: Any) -> None:
    chunk = EmbeddedChunk(field="content", ord=0, text="", embed_hash="h", vector=vector)
    back = EmbeddedChunk.model_validate_json(chunk.model_dump_json())
    assert back.vector.dtype == np.float32
    assert back.vector.tobytes() == vector.tobytes()


def test_a_part_comes_back_with_its_vectors() -> None:
    [part] = parts_of(change(5), {"content": ["a", "b"]})
    back = PageEmbeddings.decode(part.encode())
    assert back.encode() == part.encode()
    np.testing.assert_array_equal(back.chunks[1].vector, part.chunks[1].vector)
    assert len(json.loads(part.encode())["chunks"][0]["vector"]) < 30  # base64, not a list of numbers


@pytest.mark.parametrize(
    "vector",
    [None, "", "AAA", "é", "AACAfw==", "AADAfw==", 5, [1.0, 2.0], [[1.0]], {"a": 1}, [{}], True],
    ids=["null", "empty", "cut", "letters", "inf", "nan", "number", "list", "nested", "object", "objects", "true"],
)
def test_what_is_no_vector_is_refused_as_a_bad_message(vector: Any) -> None:
    value = json.loads(parts_of(change(5), {"content": ["a"]})[0].encode())
    value["chunks"][0]["vector"] = vector
    with pytest.raises(WireError, match=r"chunks\.0\.vector"):
        PageEmbeddings.decode(json.dumps(value).encode())


def test_units_travel_with_their_chunk_and_cost_nothing_where_there_are_none() -> None:
    [part] = parts_of(change(5), {"content": ["a", "b"]})
    assert b"unit" not in part.encode()
    assert part.chunks[0].units == ()
    unit = ChunkUnit(start=0, text="- a", kind="item", headings=("Fees",), intro="It costs:", block=0)
    some = part.chunks[0].model_copy(update={"units": (unit, unit), "unit_vectors": bytes(range(250, 256)) + b"ab"})
    back = PageEmbeddings.decode(part.model_copy(update={"chunks": (some, part.chunks[1])}).encode())
    assert back.chunks[0].units == (unit, unit)
    assert back.chunks[0].unit_vectors == some.unit_vectors
    assert back.chunks[1].units == ()


@pytest.mark.parametrize("vectors", ["", "AAAA", "AAAAAAA=", "é", 5, None])
def test_units_and_vectors_that_do_not_fit_are_a_bad_message(vectors: Any) -> None:
    value = json.loads(parts_of(change(5), {"content": ["a"]})[0].encode())
    value["chunks"][0] |= {"units": [{"start": 0, "text": "a", "kind": "prose", "block": 0}], "unit_vectors": vectors}
    with pytest.raises(WireError, match=r"chunks\.0"):
        PageEmbeddings.decode(json.dumps(value).encode())


@pytest.mark.parametrize("vector", [np.zeros((2, 2), np.float32), np.array([np.nan]), np.array([]), np.float32(1)])
def test_a_model_that_makes_no_vectors_is_caught_before_the_bus(vector: Any) -> None:
    with pytest.raises(ValidationError, match="finite float32"):
        EmbeddedChunk(field="content", ord=0, text="", embed_hash="h", vector=vector)


def test_the_receipts_of_a_page_are_ordered_by_revision_then_by_finality() -> None:
    def version(revision: int, state: Any) -> int:
        return ReceiptEvent(change=change(revision), state=state, at=NOON).version

    assert version(5, "queued") == version(5, "superseded")
    assert version(5, "searchable") == version(5, "deleted")
    assert version(5, "queued") < version(5, "failed") < version(5, "searchable") < version(6, "queued")
    assert version(MAX_REVISION, "searchable") < 2**63  # Elasticsearch's versions


@pytest.mark.parametrize(
    ("chunker", "fingerprint"),
    [
        (Chunker(mode="content", size=1000, overlap=0.2), "content-1000-20"),
        (Chunker(mode="fixed", size=512, overlap=0.0, titled=True), "fixed-512-0-titled"),
        (Chunker(mode="fixed", size=512, overlap=0.29), "fixed-512-29"),
    ],
)
def test_a_chunker_is_known_by_its_fingerprint(chunker: Chunker, fingerprint: str) -> None:
    assert chunker.fingerprint == fingerprint


def test_a_head_comes_back_as_it_was() -> None:
    head = Head(change=change(5), state="live", counts={"content": 3}, parts=2, model="m", chunker="c", settled_at=NOON)
    assert Head.model_validate(json.loads(head.model_dump_json())) == head


def test_sources_are_numbered_from_one() -> None:
    with pytest.raises(ValidationError):
        Source.model_validate(source(1, "a").model_dump() | {"n": 0})


def test_request_ids_fit_into_urls() -> None:
    for id in ("short", "x" * 65, "with space", "with/slash", "with.dot"):
        with pytest.raises(ValidationError):
            Question.model_validate(question().model_dump() | {"request_id": id})


def test_grades_are_those_of_the_gate() -> None:
    for grade in (-1, 6):
        with pytest.raises(ValidationError):
            Retrieved.model_validate(retrieved().model_dump() | {"grade": grade})
