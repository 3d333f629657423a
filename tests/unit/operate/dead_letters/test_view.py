"""A dead letter made readable: what it says, and what it would do to its page."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.ingest.accept import reference
from pipelines.operate.dead_letters.view import MAX_TEXT, BadValue, checked, compare, detail, page_of_key, summary
from pipelines.runtime.dead_letters import UnreadableLetter
from pipelines.runtime.errors import Retryable
from pipelines.runtime.record import Record
from schemas.head import Head
from schemas.ingest import ReceiptEvent
from schemas.letters import DeadLetterDetail, RevisionDiff
from schemas.page import PageChange, PageDocument
from schemas.query import Question
from schemas.topics import CHANGES, EMBEDDINGS, RECEIPTS, REQUESTS, Topic
from tests.making import NOON, change, parts_of
from text.diff import MAX_SHOWN, MAX_WIDTH, page_diff

KEY = b"town:en:fees"
QUESTION = Question(
    request_id="request-1", conversation_id="conversation-1", site="town", lang="en", question="?", asked_at=NOON,
    deadline=NOON,
)  # fmt: skip


def saved(revision: int, **fields: Any) -> PageChange:
    page = PageDocument(id="fees", lang="en", **{"title": "Fees", **fields})
    return PageChange(
        op="upsert",
        site="town",
        lang="en",
        page_id="fees",
        revision=revision,
        accepted_at=NOON,
        source="push",
        page=page,
    )


def deleted(revision: int) -> PageChange:
    return saved(revision).model_copy(update={"op": "delete", "page": None})


class Index:
    """The log holds these changes, one an offset; the index shows one of them."""

    def __init__(self, *log: PageChange, shown: int | None = None, error: Retryable | None = None) -> None:
        self._log = log
        self._shown = shown
        self._error = error

    async def heads(self, site: str, page_keys: Iterable[str]) -> Mapping[str, Head]:
        if self._error is not None:
            raise self._error
        if self._shown is None:
            return {}
        good = self._log[self._shown]
        state = "live" if good.op == "upsert" else "deleted"
        head = Head.model_validate({"change": reference(good, 0, self._shown), "state": state, "settled_at": NOON})
        return {key: head for key in page_keys if key == good.page_key}

    async def read(self, partition: int, start: int, end: int | None = None) -> list[Record]:
        assert (partition, end) == (0, start + 1)
        return [Record("cms.changes", 0, start, KEY, self._log[start].encode())] if start < len(self._log) else []


async def diff(value: bytes | None, index: Index, topic: Topic = CHANGES, key: bytes = KEY) -> RevisionDiff:
    found = await compare(topic, Record(topic.name, 0, 1, key, value), index, index)
    assert found
    return found


def changed(found: RevisionDiff) -> set[str]:
    return {line for line in found.lines[2:] if not line.startswith((" ", "@@"))}


async def test_every_field_that_an_editor_knows_is_compared() -> None:
    old = saved(1, name="n", description="d", keywords=("a", "b"), url="/a", content="<p>1</p><p>2</p><p>4</p>")
    new = saved(2, name="N", description="d", keywords=("a",), url="/b", groups=("x",), content="<p>1</p>\n<p>3</p>4")
    found = await diff(new.encode(), Index(old, shown=0))
    assert (found.last_good, found.revision, found.note) == (1, 2, "")
    gone = {"-url: /a", "-name: n", "-keywords: a, b", "-<p>2</p>", "-<p>4</p>"}
    assert changed(found) == gone | {"+url: /b", "+name: N", "+keywords: a", "+groups: x", "+<p>3</p>", "+4"}


async def test_a_page_that_becomes_nobodys_is_told_from_one_for_everybody() -> None:
    found = await diff(saved(2, groups=()).encode(), Index(saved(1), shown=0))
    assert changed(found) == {"+groups: (nobody)"}


async def test_the_same_page_has_no_difference_and_a_delete_takes_everything() -> None:
    index = Index(saved(1, content="<p>1</p>"), shown=0)
    assert (await diff(saved(2, content="<p>1</p>").encode(), index)).lines == ()
    assert changed(await diff(deleted(2).encode(), index)) == {"-title: Fees", "-<p>1</p>"}


@pytest.mark.parametrize(
    ("index", "value", "note"),
    [
        (Index(), saved(2).encode(), "there is no last good revision: the index shows nothing"),
        (Index(deleted(7), shown=0), saved(8).encode(), "no last good revision: the page is deleted, as of revision 7"),
        (Index(saved(1), shown=0), b"\xff", "the letter's value is no page"),
        (Index(saved(1), shown=0), None, "the letter's value is no page"),
        (Index(saved(1), shown=0), b'{"page": 7}', "the letter's value is no page"),
        (Index(saved(1), shown=0), b"[" * 100_000, "the letter's value is no page"),
        (Index(saved(5), shown=0), saved(5).encode(), "the index shows revision 5 already"),
        (Index(error=Retryable("Elasticsearch is away")), saved(5).encode(), "now: Elasticsearch is away"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
async def test_what_there_is_to_know_besides_the_diff(index: Index, value: bytes | None, note: str) -> None:
    assert note in (await diff(value, index)).note


async def test_a_change_that_its_schema_refuses_is_compared_as_far_as_it_goes() -> None:
    value = {**json.loads(saved(2, title="New").encode()), "v": 99, "colour": "red"}
    value["page"]["keywords"] = [1, None]
    found = await diff(json.dumps(value).encode(), Index(saved(1), shown=0))
    assert (found.revision, changed(found)) == (2, {"-title: Fees", "+title: New", "+keywords: 1, None"})


async def test_later_topics_take_the_change_from_the_log() -> None:
    index = Index(saved(1), saved(2, title="New"), shown=0)
    (part,) = parts_of(change(2, offset=1))
    found = await diff(part.encode(), index, EMBEDDINGS, b"town:en:fees#0")
    assert (found.revision, changed(found)) == (2, {"-title: Fees", "+title: New"})
    (lost,) = parts_of(change(2, offset=9))
    assert "not in cms.changes any more" in (await diff(lost.encode(), index, EMBEDDINGS)).note
    # As of a `queued` receipt, whose position means nothing.
    receipt = ReceiptEvent(change=change(2, offset=0), state="queued", at=NOON)
    assert "not in cms.changes any more" in (await diff(receipt.encode(), index, RECEIPTS)).note


async def test_a_question_is_about_no_page() -> None:
    record = Record(REQUESTS.name, 0, 1, b"conversation-1", QUESTION.encode())
    assert await compare(REQUESTS, record, Index(), Index()) is None


def test_a_long_diff_is_cut_and_says_so() -> None:
    old, new = {"content": "\n".join(map(str, range(5_000)))}, {"content": "\n".join(f"x{n}" for n in range(5_000))}
    lines = page_diff(old, new, "a", "b")
    assert (len(lines), lines[-1]) == (MAX_SHOWN + 1, "... only the first 1,000 lines are shown")
    wide = page_diff({"content": "x"}, {"content": "y" * 5_000}, "a", "b")
    assert max(map(len, wide)) == MAX_WIDTH + 3


@pytest.mark.parametrize(
    ("key", "page"),
    [
        (b"town:en:fees", ("town", "en", "fees")),
        (b"town:en:news%2F12#3", ("town", "en", "news/12")),
        (b"conversation-1", None),
        (b"*:en:fees", None),
        (b"a:b:c:d", None),
        (b"\xff:en:fees", None),
        (b"", None),
        (None, None),
    ],
)
def test_the_page_is_read_from_the_key(key: bytes | None, page: tuple[str, str, str] | None) -> None:
    assert page_of_key(key) == page


def shown(topic: Topic, value: bytes | None, *, full: bool = False) -> DeadLetterDetail:
    record = Record(topic.name, 0, 1, KEY, value, (("a", b"\xff"), ("b", None), ("c", b"x" * 9_000)), 5)
    return detail(topic, record, UnreadableLetter("odd"), None, None, full=full)


def test_a_message_is_shown_as_json_with_short_vectors() -> None:
    (part,) = parts_of(change(2))
    short, whole = shown(EMBEDDINGS, part.encode()), shown(EMBEDDINGS, part.encode(), full=True)
    assert whole.value == json.loads(part.encode())
    assert isinstance(short.value, dict)
    assert isinstance(short.value["chunks"], list)
    assert "24 characters of base64" in str(short.value["chunks"][0])
    assert (short.text, short.problem) == (None, None)
    values = [header.value for header in short.headers]
    assert values[:2] == ["0xff", None]
    assert (values[2] or "").endswith("... 9,000 characters")


def test_what_is_no_message_is_shown_as_text_or_hex() -> None:
    text = "ü" * 10_000
    assert (shown(CHANGES, text.encode()).text or "").startswith("ü" * MAX_TEXT + "... 10,000")
    assert shown(CHANGES, text.encode(), full=True).text == text
    assert shown(CHANGES, b"\xff\x00").text == "0xff00"
    nothing = shown(CHANGES, None)
    assert (nothing.value, nothing.text, nothing.letter.size) == (None, None, 0)
    assert "empty value" in (nothing.problem or "")


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_letter_may_claim_any_time(timestamp_ms: int) -> None:
    found = summary(CHANGES, Record("t", 0, 1, None, None, (), timestamp_ms), UnreadableLetter("odd"), None)
    assert found.last_failed_at.tzinfo is not None
    if timestamp_ms == 0:
        assert found.last_failed_at == datetime(1970, 1, 1, tzinfo=UTC)


def test_a_corrected_value_must_be_its_topics_message_about_its_key() -> None:
    (part,) = parts_of(change(2))
    assert checked(CHANGES, KEY, saved(3).encode() + b"\n ") == saved(3).encode()
    assert checked(EMBEDDINGS, KEY + b"#0", part.encode()) == part.encode()
    assert checked(REQUESTS, b"conversation-1", QUESTION.encode()) == QUESTION.encode()
    for topic, key, value in (
        (CHANGES, b"town:en:other", saved(3).encode()),
        (CHANGES, None, saved(3).encode()),
        (EMBEDDINGS, KEY + b"#1", part.encode()),
        (EMBEDDINGS, KEY, part.encode()),
    ):
        with pytest.raises(BadValue, match="another page or part"):
            checked(topic, key, value)
    with pytest.raises(BadValue, match="op: "):
        checked(CHANGES, KEY, b"{}")
