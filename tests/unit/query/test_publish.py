"""Publish: one writer's events, numbered, and who begins again after a worker that died."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from pipelines.query.publish import CLOCK_SKEW_MS, Publication, Published, begin, fail
from pipelines.runtime.errors import Retryable
from pipelines.runtime.record import Record
from schemas.answer import AnswerEvent, Done, Event, Failed, Restart, Token
from schemas.base import Message, WireError
from schemas.query import LogPlace
from schemas.topics import ANSWERS, Topic
from tests.asking import NOON, question
from tests.fakes.pages import FakeSender

REQUEST = question().request_id


class FakeLog:
    """Gives what was written of a request; remembers what it was asked."""

    def __init__(self, written: Sequence[AnswerEvent] = ()) -> None:
        self.written = written
        self.asked: list[tuple[str, int]] = []
        self.begins: tuple[int, int] | None = None

    async def of_key(self, key: str, since_ms: int, *, begins: tuple[int, int] | None = None) -> list[Record]:
        self.asked.append((key, since_ms))
        self.begins = begins
        return [Record("answer.events", 0, i, key.encode(), e.encode()) for i, e in enumerate(self.written)]


def event(said: Event, attempt: int = 1, seq: int = 0) -> AnswerEvent:
    return AnswerEvent(request_id=REQUEST, attempt=attempt, seq=seq, event=said)


def record(fresh: bool) -> Record:
    return Record("query.retrieved", 0, 7, b"conversation-1", b"...", fresh=fresh)


def told(sender: FakeSender) -> list[Any]:
    """Attempt, number and event of what was sent."""
    assert all((s.topic, s.key) == (ANSWERS, REQUEST) for s in sender.sent)
    return [
        (s.message.attempt, s.message.seq, s.message.event) for s in sender.sent if isinstance(s.message, AnswerEvent)
    ]


async def begun(fresh: bool, *written: AnswerEvent) -> tuple[Publication | Published, FakeSender, FakeLog]:
    sender, log = FakeSender(), FakeLog(written)
    return await begin(record(fresh), question(), sender, log), sender, log


A, B = Token(text="a"), Token(text="b")


async def test_events_are_numbered_without_gaps_and_each_attempt_from_the_start() -> None:
    sender = FakeSender()
    publication = Publication(sender, question(), 1)
    await publication.put(A, B)
    await publication.put()
    await publication.put(A)
    await publication.restart()
    await publication.put(B)
    assert told(sender) == [(1, 0, A), (1, 1, B), (1, 2, A), (2, 0, Restart(attempt=2)), (2, 1, B)]


class Requests(FakeSender):
    """Counts the requests to the broker."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    async def send_all(self, topic: Topic, key: str, messages: Sequence[Message]) -> None:
        self.sizes.append(len(messages))
        await super().send_all(topic, key, messages)


async def test_what_is_followed_at_once_is_written_together_with_what_follows() -> None:
    sender = Requests()
    publication = Publication(sender, question(), 1)
    await publication.put(A, more=True)
    assert (told(sender), publication.text, publication.published.first_word_at) == ([], "a", None)
    await publication.put(B, Done())
    assert told(sender) == [(1, 0, A), (1, 1, B), (1, 2, Done())]
    assert sender.sizes == [3]
    assert publication.published.first_word_at is not None


async def test_what_was_held_is_in_the_log_before_it_is_taken_back() -> None:
    sender = FakeSender()
    publication = Publication(sender, question(), 1)
    await publication.put(A, more=True)
    await publication.restart()
    await publication.put(B)
    assert told(sender) == [(1, 0, A), (2, 0, Restart(attempt=2)), (2, 1, B)]
    assert publication.text == "b"


async def test_every_event_says_whose_it_is() -> None:
    sender = FakeSender()
    await Publication(sender, question(), 1).put(A, Done())
    assert [s.message.site for s in sender.sent if isinstance(s.message, AnswerEvent)] == ["town", "town"]


async def test_a_fresh_question_is_begun_without_a_look_at_the_log() -> None:
    publication, sender, log = await begun(True, event(Done()))
    assert isinstance(publication, Publication)
    await publication.put(A)
    assert told(sender) == [(1, 0, A)]
    assert log.asked == []


async def test_a_question_delivered_again_before_anything_was_written_is_begun_quietly() -> None:
    publication, sender, log = await begun(False)
    assert isinstance(publication, Publication)
    await publication.put(A)
    assert told(sender) == [(1, 0, A)]
    assert log.asked == [(REQUEST, round(NOON.timestamp() * 1000) - CLOCK_SKEW_MS)]


async def test_an_answer_that_broke_off_begins_again_as_the_next_attempt() -> None:
    publication, sender, _ = await begun(False, event(A), event(Restart(attempt=2), 2), event(A, 2, 1), event(B, 1, 1))
    assert isinstance(publication, Publication)
    await publication.put(B)
    assert told(sender) == [(3, 0, Restart(attempt=3)), (3, 1, B)]


async def test_an_answer_given_to_the_end_is_left_alone() -> None:
    late = Failed(code="timeout", message="Too slow.")
    published, sender, _ = await begun(False, event(A), event(late, seq=1), event(Done(), seq=2))
    assert published == Published(late, datetime.fromtimestamp(0, UTC))
    assert sender.sent == []


async def test_of_several_attempts_the_last_that_ended_is_what_was_published() -> None:
    first, second = Failed(code="timeout", message=""), Failed(code="model-down", message="")
    published, _, _ = await begun(False, event(second, 2, 1), event(first, 1, 1), event(Done(), 1, 2))
    assert published == Published(second, None)


async def test_a_failed_question_ends_in_plain_words() -> None:
    sender = FakeSender()
    await fail(record(fresh=False), question(), sender, FakeLog(), "timeout", "Too slow.")
    assert told(sender) == [(1, 0, Failed(code="timeout", message="Too slow.")), (1, 1, Done())]


async def test_a_failure_in_the_middle_of_an_answer_takes_back_what_was_written() -> None:
    """The record may have been fresh when it was first tried; it is not any more."""
    sender = FakeSender()
    await fail(record(fresh=True), question(), sender, FakeLog([event(A)]), "error", "Sorry.")
    assert told(sender) == [
        (2, 0, Restart(attempt=2)),
        (2, 1, Failed(code="error", message="Sorry.")),
        (2, 2, Done()),
    ]


async def test_a_failure_after_the_end_is_not_told() -> None:
    sender = FakeSender()
    await fail(record(fresh=True), question(), sender, FakeLog([event(Done())]), "error", "Sorry.")
    assert sender.sent == []


async def test_the_beginning_is_looked_for_where_the_question_says() -> None:
    log = FakeLog()
    asked = question().model_copy(update={"begins": LogPlace(partition=3, offset=40)})
    await begin(record(fresh=False), asked, FakeSender(), log)
    assert log.begins == (3, 40)
    await begin(record(fresh=False), question(), FakeSender(), log)  # asked by an older gateway
    assert log.begins is None


async def test_a_log_with_something_else_under_the_request_is_not_written_over() -> None:
    class Odd(FakeLog):
        async def of_key(self, key: str, since_ms: int, *, begins: tuple[int, int] | None = None) -> list[Record]:
            return [Record("answer.events", 0, 0, key.encode(), b"{}")]

    with pytest.raises(WireError):
        await begin(record(fresh=False), question(), FakeSender(), Odd())


async def test_a_broker_that_is_away_is_told_to_the_stage() -> None:
    class Down(FakeSender):
        async def send(self, topic: Topic, key: str, message: Message, *, partition_key: str | None = None) -> None:
            raise Retryable("no broker")

    with pytest.raises(Retryable):
        await Publication(Down(), question(), 1).put(A)
