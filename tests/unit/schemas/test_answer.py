"""A token that is handed on unread says what it says when it is read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.answer import AnswerEvent, Citation, Done, Event, Token, WrittenToken, read_event
from schemas.base import WireError

TOKEN = AnswerEvent(request_id="request-0001", site="town", attempt=2, seq=7, event=Token(text="a"))


@given(text=st.text(), site=st.sampled_from(["town", "town-2", None]), attempt=st.integers(1), seq=st.integers(0))
def test_a_token_as_we_write_it(text: str, site: str | None, attempt: int, seq: int) -> None:
    written = AnswerEvent(request_id="-quest_0001", site=site, attempt=attempt, seq=seq, event=Token(text=text))
    found = read_event(written.encode())
    assert isinstance(found, WrittenToken)
    assert (found.site, found.attempt, found.seq, found.final) == (site, attempt, seq, False)
    assert found.event == Token(text=text)
    assert found.data == Token(text=text).model_dump_json(exclude={"type"})


@pytest.mark.parametrize("event", [Citation(n=1, start=0, end=1, quote='{"text":"a"}'), Done()])
def test_other_events_are_read(event: Event) -> None:
    written = TOKEN.model_copy(update={"event": event})
    assert read_event(written.encode()) == written


@pytest.mark.parametrize(
    ("before", "after"), [(b'"v":1', b'"v": 1'), (b'{"type"', b'{"new":1,"type"'), (b'"seq"', b'"new":1,"seq"')]
)
def test_a_token_that_another_version_writes_is_read(before: bytes, after: bytes) -> None:
    found = read_event(TOKEN.encode().replace(before, after))
    assert isinstance(found, AnswerEvent)
    assert isinstance(found.event, Token)
    assert found.event.text == "a"


@pytest.mark.parametrize("text", [b"a\nb", b"a\x00", b"\\", b'"', b"\\u12", b"\\x", b"\xff"])
def test_what_is_no_json_is_refused(text: bytes) -> None:
    with pytest.raises(WireError):
        read_event(TOKEN.encode().replace(b'"text":"a"', b'"text":"' + text + b'"'))
