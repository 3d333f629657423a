"""What a dead letter keeps and tells."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.runtime.dead_letters import (
    HISTORY_PREFIX,
    MARK_PREFIX,
    MAX_ERROR_TEXT,
    PREFIX,
    DeadLetter,
    Mark,
    UnreadableLetter,
    describe,
    entry,
    from_headers,
    mark_headers,
    original_headers,
    redrive_headers,
    to_headers,
)
from pipelines.runtime.errors import TooLarge
from pipelines.runtime.record import TRACE_HEADER, Headers, Record
from schemas.base import WireError
from schemas.letters import Action

THEN = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
names = st.text(max_size=10).filter(lambda name: not name.startswith("pagewire.errors."))


@given(st.lists(st.tuples(names, st.none() | st.binary(max_size=10))).map(tuple), st.text())
def test_headers_survive_and_the_reason_can_be_read_back(headers: Headers, reason: str) -> None:
    record = Record("t", 3, 9, b"k", None, headers, timestamp_ms=1)
    letter = describe(record, "chunk", TooLarge(reason), attempts=2, first_failed_at=THEN)
    buried = to_headers(headers, letter)
    assert original_headers(buried) == headers
    again = from_headers(buried)
    assert (again.code, again.attempts, again.first_failed_at) == ("too-large", 2, THEN)
    assert again.message == (reason or "TooLarge")[:MAX_ERROR_TEXT].encode("utf-8", "replace").decode()
    # Buried once more after a redrive: one reason, the new one.
    assert to_headers(buried, letter) == buried


def test_a_message_that_is_no_dead_letter_is_told_so() -> None:
    letter = describe(Record("t", 0, 0, None, None), "chunk", KeyError("x"), 1, THEN)
    headers = dict(to_headers((), letter))
    with pytest.raises(WireError, match=r"pagewire\.errors\.stage"):
        from_headers((("other", b"x"),))
    with pytest.raises(WireError, match="not a dead letter"):
        from_headers(tuple((headers | {"pagewire.errors.offset": b"seven"}).items()))


def test_the_trace_is_the_given_one_or_always_the_same() -> None:
    bare = Record("t", 0, 1, b"k", b"v")
    assert bare.trace_id == Record("t", 0, 1, b"k", b"v", attempt=2).trace_id
    assert bare.trace_id != Record("t", 0, 2, b"k", b"v").trace_id
    assert Record("t", 0, 1, b"k", b"v", ((TRACE_HEADER, b"abc"),)).trace_id == "abc"


def test_of_a_header_given_twice_the_last_counts() -> None:
    assert Record("t", 0, 1, b"k", b"v", (("a", b"1"), ("a", b"2"))).header("a") == b"2"
    assert Record("t", 0, 1, b"k", b"v").header("a") is None


moments = st.datetimes(timezones=st.just(UTC))
texts = st.text(st.characters(exclude_categories=["Cs"]))
letters = st.builds(
    DeadLetter,
    stage=texts,
    topic=texts,
    partition=st.integers(0, 1_000),
    offset=st.integers(0, 2**63 - 1),
    timestamp_ms=st.integers(-1, 2**63 - 1),
    error_class=texts,
    code=texts,
    message=texts,
    attempts=st.integers(1, 10**9),
    first_failed_at=moments,
    last_failed_at=moments,
    redrives=st.integers(0, 10**9),
)
others = st.lists(st.tuples(names, st.none() | st.binary(max_size=10))).map(tuple)


@given(others, letters)
def test_a_letter_comes_back_from_its_headers(headers: Headers, letter: DeadLetter) -> None:
    record = Record("t.dlq", 0, 5, b"k", b"v", to_headers(headers, letter))
    assert entry(record) == letter
    assert original_headers(record.headers) == headers


@given(others, letters, st.integers(1, 100))
def test_a_redriven_message_that_fails_again_goes_on_counting(headers: Headers, letter: DeadLetter, tries: int) -> None:
    redriven = Record("t", 3, 9, b"k", b"v", redrive_headers(to_headers(headers, letter), letter))
    assert original_headers(redriven.headers) == headers
    again = describe(redriven, "embed", KeyError("x"), tries, first_failed_at=THEN)
    assert (again.redrives, again.attempts) == (letter.redrives + 1, letter.attempts + tries)
    assert again.first_failed_at == letter.first_failed_at
    buried = to_headers(redriven.headers, again)
    assert from_headers(buried) == again
    assert not [name for name, _ in buried if name.startswith(HISTORY_PREFIX)]  # told by the reason by now
    third = describe(Record("t", 3, 9, b"k", b"v", redrive_headers(buried, again)), "embed", KeyError("x"), 1, THEN)
    assert (third.redrives, third.attempts) == (letter.redrives + 2, letter.attempts + tries + 1)


@given(st.integers(0, 4), st.sampled_from(["redriven", "edited", "dropped"]), moments)
def test_a_mark_comes_back_from_its_headers(settles: int, action: Action, at: datetime) -> None:
    mark = Mark(settles, action, at)
    assert entry(Record("t.dlq", 0, 5, b"k", b"", mark_headers(mark))) == mark


forged = st.sampled_from(
    [prefix + name for prefix in (PREFIX, MARK_PREFIX) for name in ("stage", "settles", "action", "at", "offset")]
)


@given(st.lists(st.tuples(forged | names, st.none() | st.binary(max_size=30))).map(tuple), letters)
def test_whatever_stands_in_the_topic_is_something(headers: Headers, letter: DeadLetter) -> None:
    assert isinstance(entry(Record("t.dlq", 0, 5, b"k", b"v", headers)), DeadLetter | Mark | UnreadableLetter)
    whole = to_headers((), letter)
    for changed in headers:  # a letter with one header that somebody added or overwrote
        assert isinstance(entry(Record("t.dlq", 0, 5, b"k", b"v", (*whole, changed))), DeadLetter | UnreadableLetter)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("settles", b"5"),  # itself
        ("settles", b"77"),  # what comes later
        ("settles", b"1e2"),
        ("settles", "٣".encode()),
        ("settles", b"9" * 5_000),
        ("action", b"burnt"),
        ("at", b"soon"),
        ("at", b"0001-01-01T00:00:00+14:00"),
        ("at", None),
    ],
)
def test_a_mark_that_cannot_be_true_is_none(name: str, value: bytes | None) -> None:
    headers = dict(mark_headers(Mark(1, "dropped", THEN))) | {MARK_PREFIX + name: value}
    found = entry(Record("t.dlq", 0, 5, b"k", b"", tuple(headers.items())))
    assert isinstance(found, UnreadableLetter)
    assert "not a mark" in found.why


def test_a_message_may_bring_headers_of_our_names_and_is_a_letter_all_the_same() -> None:
    own = mark_headers(Mark(0, "dropped", THEN))
    letter = describe(Record("t", 0, 9, b"k", b"v", own), "chunk", KeyError("x"), 1, THEN)
    assert entry(Record("t.dlq", 0, 5, b"k", b"v", to_headers(own, letter))) == letter


def test_a_forged_history_counts_for_nothing() -> None:
    headers = ((HISTORY_PREFIX + "times", b"3"), (HISTORY_PREFIX + "attempts", b"many"))
    letter = describe(Record("t", 0, 9, b"k", b"v", headers), "chunk", KeyError("x"), 2, THEN)
    assert (letter.redrives, letter.attempts, letter.first_failed_at) == (0, 2, THEN)


def test_letters_of_before_redrives_were_counted_can_be_read_and_times_are_utc() -> None:
    headers = dict(to_headers((), describe(Record("t", 0, 9, b"k", b"v"), "chunk", KeyError("x"), 2, THEN)))
    del headers[PREFIX + "redrives"]
    headers[PREFIX + "first_failed_at"] = THEN.astimezone(timezone(timedelta(hours=2))).isoformat().encode()
    found = from_headers(tuple(headers.items()))
    assert (found.redrives, found.first_failed_at, found.first_failed_at.tzinfo) == (0, THEN, UTC)
