"""What a dead letter keeps and tells."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.runtime.dead_letters import MAX_ERROR_TEXT, describe, from_headers, original_headers, to_headers
from pipelines.runtime.errors import TooLarge
from pipelines.runtime.record import TRACE_HEADER, Headers, Record
from schemas.base import WireError

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
