"""The ingest handlers: one message in, the right messages out."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from prometheus_client import REGISTRY

from pipelines.ingest import handlers
from pipelines.ingest.accept import reference
from pipelines.ingest.documents.convert import CUT
from pipelines.ingest.embed import Embedding
from pipelines.ingest.ports import IndexReplaced
from pipelines.runtime.dead_letters import DeadLetter
from pipelines.runtime.record import Lane, Record
from schemas.base import Message, WireError
from schemas.ingest import Chunker, PageChunks, PageEmbeddings, ReceiptEvent
from schemas.page import ChangeRef, Op, PageChange, PageDocument, PageMeta, PageMetadata
from schemas.topics import CHANGES, CHUNKS, EMBEDDINGS, RECEIPTS
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.pages import FakeIndex, FakePages, FakeSender
from tests.making import NOON, change, newest, no_attachments, parts_of
from text import html_tree
from wiring.ingest import by_page

CHUNKER = Chunker(mode="content", size=1000, overlap=0.2)
KEY = "town:en:fees"


def record(message: Message | bytes, offset: int = 9) -> Record:
    value = message if isinstance(message, bytes) else message.encode()
    return Record("any", 2, offset, KEY.encode(), value)


def saved(op: Op = "upsert", revision: int = 5) -> PageChange:
    page = PageDocument(
        id="fees",
        lang="en",
        name="fees",
        url="/fees",
        content="<p>Free.</p>",
        groups=("staff",),
        labels={"kind": ("form",)},
    )
    return PageChange(
        op=op,
        site="town",
        lang="en",
        page_id="fees",
        revision=revision,
        accepted_at=NOON,
        source="push",
        page=page if op == "upsert" else None,
    )


def test_hits_show_what_a_page_is_and_of_when_and_can_be_filtered_by_it() -> None:
    page = PageDocument(
        id="fees", labels={"kind": ("form",)}, changed_at=NOON, metadata=PageMetadata(page_kind="FAQPage")
    )
    change = saved().model_copy(update={"page": page})
    meta = handlers.chunked(change, CHUNKER, 0, 0).meta
    assert meta is not None
    assert (meta.page_kind, meta.changed_at, meta.published_at) == ("FAQPage", NOON, None)
    assert meta.labels == {"type": ("FAQPage",), "kind": ("form",)}
    own = page.model_copy(update={"labels": {"type": ("help",)}})
    typed = handlers.chunked(change.model_copy(update={"page": own}), CHUNKER, 0, 0)
    assert typed.meta is not None
    assert typed.meta.labels == {"type": ("help",)}
    said = PageMetadata(
        page_kind="Article", authors=("Ada\tLind", "Bo"), breadcrumbs=("Home", "x" * 201, "fees", "\x01")
    )
    crowded = {"tags": tuple(f"{n}" for n in range(198))}
    for labels, authors in (({}, ("Ada Lind", "Bo")), ({"author": ("Desk",)}, ("Desk",)), (crowded, ("Ada Lind",))):
        written = page.model_copy(update={"title": "Fees", "metadata": said, "labels": labels})
        labelled = handlers.chunked(change.model_copy(update={"page": written}), CHUNKER, 0, 0).meta
        assert labelled is not None
        assert (labelled.labels["type"], labelled.labels["author"]) == (("Article",), authors)
        assert labelled.labels.get("breadcrumb") == (None if labels == crowded else ("Home",))
    older = page.model_copy(update={"changed_at": None, "labels": {"type": ("help",)}})
    assert typed.digest != handlers.chunked(change.model_copy(update={"page": older}), CHUNKER, 0, 0).digest


async def as_now(site: str) -> Chunker:
    assert site == "town"
    return CHUNKER


class NoLog:
    async def read(self, partition: int, start: int, end: int | None = None) -> list[Record]:
        raise AssertionError("nothing is to be healed")


async def test_a_change_becomes_chunks_that_know_where_it_stands() -> None:
    sender = FakeSender()
    await handlers.chunk_handler(as_now, no_attachments, newest)(record(saved()), sender)
    sent, ahead = sender.sent
    assert (sent.topic, sent.key) == (CHUNKS, KEY)
    assert (ahead.topic, ahead.key, ahead.partition_key) == (EMBEDDINGS, f"{KEY}#ahead", KEY)
    assert isinstance(sent.message, PageChunks)
    assert sent.message.change == reference(saved(), partition=2, offset=9)
    assert sent.message.meta == PageMeta(title="fees", url="/fees", groups=("staff",), labels={"kind": ("form",)})
    assert {(c.field, c.text) for c in sent.message.chunks} == {("name", "fees"), ("content", "Free.")}


async def test_a_large_page_does_not_hold_up_others(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []

    def chunked(*args: Any) -> PageChunks:
        threads.append(threading.current_thread())
        return whole(*args)

    whole = handlers.chunked
    monkeypatch.setattr(handlers, "chunked", chunked)
    handle = handlers.chunk_handler(as_now, no_attachments, newest)
    for content in ("<p>Free.</p>", "<p>Free.</p>" * 1_000):
        page = PageDocument(id="fees", lang="en", content=content)
        await handle(record(saved().model_copy(update={"page": page})), FakeSender())
    assert [thread is threading.main_thread() for thread in threads] == [True, False]


async def test_a_delete_becomes_chunks_without_any() -> None:
    sender = FakeSender()
    await handlers.chunk_handler(as_now, no_attachments, newest)(record(saved("delete")), sender)
    sent, ahead = sender.sent
    assert isinstance(sent.message, PageChunks)
    assert (sent.message.change.op, sent.message.chunks, sent.message.meta) == ("delete", (), None)
    assert isinstance(ahead.message, PageEmbeddings)
    assert (ahead.message.change.op, ahead.message.ahead) == ("delete", True)


def test_the_editor_of_an_empty_page_is_told_that_nobody_finds_it() -> None:
    full, gone = saved(), saved("delete")
    assert full.page
    empty = full.model_copy(update={"page": full.page.model_copy(update={"name": "", "content": "<p> </p>"})})
    assert handlers.chunked(empty, CHUNKER, 0, 0).notes == (handlers.NOTHING_TO_FIND,)
    assert (handlers.chunked(full, CHUNKER, 0, 0).notes, handlers.chunked(gone, CHUNKER, 0, 0).notes) == ((), ())


def test_the_editor_of_a_page_of_too_many_tags_is_told_where_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html_tree, "MAX_TAGS", 4)
    page = saved().page
    assert page
    for content, text, notes in (
        ("<p>one</p><p>two</p>", "one\n\ntwo", ()),
        (
            "<p>one</p><p>two</p><p>three</p>",
            "one\n\ntwo",
            (CUT, "67% of the words that its visitors see can be found; left out: over the limit: 1"),
        ),
        ("1 < 2 < 3 < 4 < 5 < 6", "1 < 2 < 3 < 4 < 5 < 6", ()),  # no tags at all
    ):
        change = saved().model_copy(update={"page": page.model_copy(update={"content": content})})
        made = handlers.chunked(change, CHUNKER, 0, 0)
        assert "".join(chunk.text for chunk in made.chunks if chunk.field == "content") == text
        assert made.notes == notes


async def test_chunks_become_parts_that_stay_together() -> None:
    class Models:
        async def for_new(self, site: str) -> FakeEmbedder:
            return FakeEmbedder()

    sender = FakeSender()
    handle = handlers.embed_handler(Embedding(Models(), FakePages()))
    await handle(record(handlers.chunked(saved(), CHUNKER, 2, 9), offset=17), sender)
    [sent] = sender.sent
    assert (sent.topic, sent.key, sent.partition_key) == (EMBEDDINGS, f"{KEY}#0", KEY)
    assert isinstance(sent.message, PageEmbeddings)
    assert (sent.message.change.offset, sent.message.chunks_offset) == (9, 17)


async def test_an_indexed_page_gets_its_receipt() -> None:
    pages, sender = FakePages(), FakeSender()
    handle = handlers.index_handler(pages, NoLog())
    first, last = parts_of(change(5), {"content": ["a", "b"]}, per_part=1)
    await handle(record(first, offset=2), sender)
    assert sender.sent == []
    await handle(record(last, offset=4), sender)
    [sent] = sender.sent
    assert (sent.topic, sent.key) == (RECEIPTS, KEY)
    assert isinstance(sent.message, ReceiptEvent)
    assert sent.message.state == "searchable"
    head = (await pages.heads("town", [KEY]))[KEY]
    assert (head.origin.embeddings, head.last_part) == (2, 4)


async def test_how_long_a_change_took_until_it_was_found_is_counted_once() -> None:
    def counted() -> float:
        return REGISTRY.get_sample_value("pagewire_searchable_seconds_count", {"lane": "save"}) or 0

    before, pages = counted(), FakePages()
    handle = handlers.index_handler(pages, NoLog())
    for offset, part in enumerate(parts_of(change(5), {"content": ["a", "b"]}, per_part=1)):
        assert counted() == before
        await handle(record(part, offset=offset), FakeSender())
    [gone] = parts_of(change(6, "delete"))
    await handle(record(gone, offset=4), FakeSender())
    assert counted() == before + 1


async def test_another_worker_knows_where_the_first_part_stands() -> None:
    pages = FakePages()
    first, last = parts_of(change(5), {"content": ["a", "b"]}, per_part=1)
    await handlers.index_handler(pages, NoLog())(record(first, offset=2), FakeSender())
    await handlers.index_handler(pages, NoLog())(record(last, offset=4), FakeSender())
    head = (await pages.heads("town", [KEY]))[KEY]
    assert (head.origin.embeddings, head.last_part) == (2, 4)


class Log:
    """`cms.changes`: at 3 stands revision 5."""

    async def read(self, partition: int, start: int, end: int | None = None) -> list[Record]:
        assert (partition, start, end) == (0, 3, 4)
        return [record(saved(revision=5))]


async def test_an_old_change_on_top_of_the_log_is_healed_before_its_receipt() -> None:
    pages, sender = FakePages(), FakeSender()
    handle = handlers.index_handler(pages, Log())
    await handle(record(parts_of(change(5, offset=3))[0]), sender)
    sender.sent.clear()
    await handle(record(parts_of(change(4, offset=8))[0]), sender)
    healed, told = sender.sent
    assert (healed.topic, healed.message) == (CHANGES, saved(revision=5))
    assert isinstance(told.message, ReceiptEvent)
    assert (told.message.state, told.message.change.revision) == ("superseded", 4)


async def test_what_was_made_for_another_index_is_sent_again_and_nothing_is_told_yet() -> None:
    pages, sender = FakePages(), FakeSender()
    [part] = parts_of(change(5, offset=3), model="fake-2-4")
    await handlers.index_handler(pages, Log())(record(part), sender)
    [again] = sender.sent
    assert (again.topic, again.message, again.lane) == (CHANGES, saved(revision=5), None)  # an editor's is a save


async def test_while_another_index_is_promoted_nothing_is_told_and_the_winner_sent_again_once() -> None:
    """The index that becomes live may know nothing of the loser."""

    class Promoting(FakePages):
        async def still_live(self, index: FakeIndex) -> bool:
            return False

    pages, sender = Promoting(), FakeSender()
    handle = handlers.index_handler(pages, Log())
    [late] = parts_of(change(4, offset=8))
    for part in (*parts_of(change(5, offset=3)), late, late):
        with pytest.raises(IndexReplaced):
            await handle(record(part), sender)
    assert [(sent.topic, sent.message, sent.lane) for sent in sender.sent] == [(CHANGES, saved(revision=5), "bulk")]


async def test_receipts_are_stored_as_they_are() -> None:
    stored: list[tuple[ReceiptEvent, Lane]] = []

    async def put(event: ReceiptEvent, lane: Lane) -> None:
        stored.append((event, lane))

    event = ReceiptEvent(change=change(5), state="queued", at=NOON)
    await handlers.receipt_handler(put)(record(event), FakeSender())
    assert stored == [(event, "save")]


async def test_a_message_under_the_key_of_another_page_is_none() -> None:
    """It would pass the page's other messages unordered; and no editor hears of a failure that is not theirs."""
    stray = replace(record(saved()), key=b"town:en:other")
    sender = FakeSender()
    with pytest.raises(WireError, match="town:en:other"):
        await handlers.chunk_handler(as_now, no_attachments, newest)(stray, sender)
    await handlers.failed_receipt("chunk", handlers.change_in_log)(stray, LETTER, sender)
    assert sender.sent == []


LETTER = DeadLetter("embed", "t", 0, 0, 0, "X", "refused", "too odd", 1, NOON, NOON)


@pytest.mark.parametrize(
    ("message", "change_of"),
    [
        (saved(), handlers.change_in_log),
        (handlers.chunked(saved(), CHUNKER, 2, 9), handlers.change_of_chunks),
        (parts_of(reference(saved(), 2, 9))[0], handlers.change_of_part),
    ],
    ids=["change", "chunks", "part"],
)
async def test_the_editor_is_told_why_a_change_failed(
    message: Message, change_of: Callable[[Record], ChangeRef]
) -> None:
    sender = FakeSender()
    await handlers.failed_receipt("embed", change_of)(record(message), LETTER, sender)
    [sent] = sender.sent
    assert (sent.topic, sent.key) == (RECEIPTS, KEY)
    assert isinstance(sent.message, ReceiptEvent)
    assert (sent.message.state, sent.message.change) == ("failed", reference(saved(), 2, 9))
    assert sent.message.error is not None
    assert (sent.message.error.stage, sent.message.error.reason) == ("embed", "too odd")
    assert NOON < sent.message.at <= datetime.now(UTC)


@pytest.mark.parametrize("value", [b"", b"not JSON", b'{"v": 2}', b"\xff\x00"])
async def test_of_bytes_that_are_no_change_nobody_is_told(value: bytes) -> None:
    sender = FakeSender()
    for change_of in (handlers.change_in_log, handlers.change_of_chunks, handlers.change_of_part):
        await handlers.failed_receipt("chunk", change_of)(record(value), LETTER, sender)
    assert sender.sent == []


@pytest.mark.parametrize(
    "handle",
    [
        handlers.chunk_handler(as_now, no_attachments, newest),
        handlers.embed_handler(Embedding(None, FakePages())),  # type: ignore[arg-type]
        handlers.index_handler(FakePages(), NoLog()),
    ],
    ids=["chunk", "embed", "index"],
)
async def test_bytes_that_are_no_message_are_refused_for_good(handle: handlers.Handler) -> None:
    with pytest.raises(WireError):
        await handle(record(b'{"v": 2}'), FakeSender())


def test_the_parts_of_a_page_are_worked_on_in_order() -> None:
    parts = [Record("t", 0, 0, key, b"") for key in (b"town:en:a%23b#0", b"town:en:a%23b#11", b"town:en:a%23b")]
    assert {by_page(part) for part in parts} == {b"town:en:a%23b"}
    assert by_page(Record("t", 0, 0, None, b"")) == b""
