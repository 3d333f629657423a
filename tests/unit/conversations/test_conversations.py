"""Conversations are kept whoever dies: completed from the log, written by several at once, never refused for long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from datetime import timedelta

import pytest

from pipelines.conversations.ask import BadPosition, Followed, UnknownAnswer
from pipelines.conversations.conversations import (
    GRACE,
    AnswerUnderWay,
    ConversationChanged,
    Conversations,
    NoTurn,
    UnknownConversation,
    VersionedConversation,
)
from pipelines.conversations.turns import ConversationOwner
from pipelines.runtime.errors import Retryable
from schemas.answer import Accepted, Answered, AnswerEvent, Done, Event, Failed, QuestionRephrased, Token
from schemas.conversation import Feedback
from schemas.query import Question, Turn
from tests.asking import NOON, question
from tests.fakes.conversations import FakeConversations

OWNER = ConversationOwner("town", "visitor:v1")
ID = "conversation-1"
HERE = "3.4.1"


class FakeLog:
    """What the log holds of each answer."""

    def __init__(self) -> None:
        self.events: dict[str, list[Event]] = {}
        self.read: list[str] = []

    async def recorded(self, site: str, request_id: str, position: str) -> AsyncGenerator[Followed, None]:
        if position != HERE:
            raise BadPosition("that event belongs to another answer")
        self.read.append(request_id)
        for event in self.events.get(request_id, []):
            yield followed(request_id, event)


def followed(request_id: str, event: Event) -> Followed:
    return Followed(HERE, AnswerEvent(request_id=request_id, seq=0, event=event))


def answer(text: str, *, stopped: bool = False) -> Answered:
    return Answered(text=text, citations=(), sources=(), extractive=False, stopped=stopped)


class Bench:
    def __init__(self) -> None:
        self.store = FakeConversations()
        self.log = FakeLog()
        self.now = NOON
        self.conversations = Conversations(self.store, self.log, 15, lambda: self.now)

    def ask(self, n: int) -> Question:
        update = {"request_id": f"request-{n:04}", "asked_at": self.now, "deadline": self.now + timedelta(seconds=90)}
        return question(f"Question {n}?").model_copy(update=update)

    async def begin(self) -> Question:
        asked = self.ask(1)
        await self.conversations.begin(OWNER, asked, HERE)
        return asked

    async def go_on(self, n: int) -> tuple[Turn, ...]:
        return (await self.conversations.go_on(OWNER, self.ask(n), HERE)).history

    async def follow(self, asked: Question, *events: Event | Exception) -> list[str]:
        async def source() -> AsyncGenerator[Followed, None]:
            for event in events:
                if isinstance(event, Exception):
                    raise event
                yield followed(asked.request_id, event)

        return [f.event.event.type async for f in self.conversations.follow(OWNER, asked, source())]

    async def states(self) -> list[str]:
        return [turn.state for turn in (await self.conversations.get(OWNER, ID)).turns]


async def test_who_follows_to_the_end_keeps_the_answer_before_handing_it_on() -> None:
    bench = Bench()
    asked = await bench.begin()
    assert await bench.states() == ["pending"]
    kept: list[str] = []

    async def source() -> AsyncGenerator[Followed, None]:
        for event in (QuestionRephrased(question="R", mode="semantic"), Token(text="Da"), answer("Daily."), Done()):
            yield followed(asked.request_id, event)

    async for seen in bench.conversations.follow(OWNER, asked, source()):
        if isinstance(seen.event.event, Answered):
            kept = await bench.states()
    assert kept == ["answered"]
    [turn] = (await bench.conversations.get(OWNER, ID)).turns
    assert (turn.answer, turn.rephrased) == ("Daily.", "R")
    assert bench.log.read == [asked.request_id]  # the look before the end, and none after it


class Reads(FakeConversations):
    """Counts what is read."""

    count = 0

    async def get(self, owner: ConversationOwner, conversation_id: str) -> VersionedConversation | None:
        self.count += 1
        return await super().get(owner, conversation_id)


async def test_the_end_of_an_answer_is_kept_without_a_read() -> None:
    """The visitor waits for it, and a read of what was just written is slow."""
    bench = Bench()
    bench.store = reads = Reads()
    bench.conversations = Conversations(reads, bench.log, 15, lambda: bench.now)
    await bench.follow(await bench.begin(), answer("Daily."), Done())
    assert reads.count == 0
    await bench.go_on(2)
    read = reads.count
    await bench.follow(bench.ask(2), answer("At nine."), Done())
    assert reads.count == read
    assert await bench.states() == ["answered", "answered"]


async def test_an_answer_is_kept_in_the_conversation_that_somebody_has_changed_meanwhile() -> None:
    bench = Bench()
    asked = await bench.begin()
    await bench.conversations.rename(OWNER, ID, "Opening hours")
    await bench.follow(asked, answer("Daily."), Done())
    detail = await bench.conversations.get(OWNER, ID)
    assert (detail.title, [turn.answer for turn in detail.turns]) == ("Opening hours", ["Daily."])


async def test_the_answer_of_a_conversation_that_was_deleted_meanwhile_is_not_kept() -> None:
    bench = Bench()
    asked = await bench.begin()
    assert await bench.store.delete(OWNER, ID)
    assert await bench.follow(asked, answer("Daily."), Done()) == ["answer", "done"]
    assert not bench.store.kept


async def test_a_question_under_way_in_a_conversation_of_another_log_is_over_with_its_deadline() -> None:
    """So it is after a restore, and for a moment where the topic has got partitions."""
    bench = Bench()
    await bench.conversations.begin(OWNER, bench.ask(1), "7.4.1")
    assert await bench.states() == ["pending"]
    bench.now += timedelta(seconds=91) + GRACE
    assert await bench.states() == ["failed"]
    await bench.go_on(2)


async def test_the_next_question_gets_the_history_from_the_store() -> None:
    bench = Bench()
    await bench.follow(await bench.begin(), answer("Daily."), Done())
    assert await bench.go_on(2) == (Turn(question="Question 1?", answer="Daily.", lang="en"),)


async def test_an_answer_nobody_followed_is_completed_from_the_log() -> None:
    bench = Bench()
    await bench.begin()
    bench.log.events["request-0001"] = [QuestionRephrased(question="R", mode="semantic"), answer("Daily."), Done()]
    assert await bench.go_on(2) == (Turn(question="Question 1?", answer="Daily.", lang="en"),)
    bench.log.events["request-0002"] = [answer("Second."), Done()]
    assert await bench.states() == ["answered", "answered"]
    assert await bench.states() == ["answered", "answered"]
    assert bench.log.read == ["request-0001", "request-0002"]  # what is complete is not looked for again


async def test_a_question_waits_for_the_one_before_it() -> None:
    bench = Bench()
    await bench.begin()
    bench.log.events["request-0001"] = [Token(text="Da")]
    with pytest.raises(AnswerUnderWay) as refused:
        await bench.go_on(2)
    assert refused.value.request_id == "request-0001"
    assert await bench.states() == ["pending"]


@pytest.mark.parametrize("end", ["stopped", "expired", "failed", "taken back"])
async def test_it_does_not_wait_for_one_that_nobody_waits_for(end: str) -> None:
    bench = Bench()
    asked = await bench.begin()
    match end:
        case "stopped":
            await bench.conversations.stopped(OWNER, asked.request_id)
        case "expired":
            bench.now += timedelta(seconds=91)
        case "failed":
            await bench.follow(asked, Failed(code="internal", message="no"), Done())
        case _:
            await bench.conversations.undo(OWNER, ID)
    assert await bench.go_on(2) == ()


async def test_an_answer_that_never_came_has_failed_and_is_searched_for_no_more() -> None:
    bench = Bench()
    await bench.begin()
    bench.now += timedelta(seconds=90) + GRACE
    assert await bench.states() == ["pending"]
    bench.now += timedelta(seconds=1)
    assert await bench.states() == ["failed"]
    assert await bench.states() == ["failed"]
    assert bench.log.read == ["request-0001"] * 2


async def test_a_stopped_answer_gets_its_text_when_it_has_ended() -> None:
    bench = Bench()
    asked = await bench.begin()
    await bench.conversations.stopped(OWNER, asked.request_id)
    assert await bench.states() == ["stopped"]
    bench.log.events[asked.request_id] = [Token(text="Half"), answer("Half", stopped=True), Done()]
    assert await bench.go_on(2) == (Turn(question="Question 1?", answer="Half", lang="en"),)


async def test_stopping_what_is_answered_changes_nothing() -> None:
    bench = Bench()
    asked = await bench.begin()
    await bench.follow(asked, answer("Daily."), Done())
    await bench.conversations.stopped(OWNER, asked.request_id)
    assert await bench.states() == ["answered"]


async def test_of_two_questions_at_once_one_is_refused() -> None:
    bench = Bench()
    await bench.follow(await bench.begin(), answer("Daily."), Done())
    results = await asyncio.gather(bench.go_on(2), bench.go_on(3), return_exceptions=True)
    assert sorted(type(result).__name__ for result in results) == ["AnswerUnderWay", "tuple"]


class Contended(FakeConversations):
    """Somebody else writes between each look and the write that follows it."""

    async def put(self, kept: VersionedConversation, *, at_once: bool = False) -> VersionedConversation:
        if kept.version is not None:
            raise ConversationChanged("again")
        return await super().put(kept)


async def test_one_who_never_gets_to_write_is_told_to_try_again() -> None:
    bench = Bench()
    bench.store.__class__ = Contended
    await bench.begin()
    with pytest.raises(ConversationChanged):
        await bench.conversations.rename(OWNER, ID, "title")


async def test_a_first_question_is_answered_even_when_it_cannot_be_kept() -> None:
    bench = Bench()
    bench.store.error = Retryable("no Elasticsearch")
    asked = await bench.begin()
    assert await bench.follow(asked, answer("Daily."), Done()) == ["answer", "done"]
    with pytest.raises(Retryable):
        await bench.go_on(2)  # without what was said before it means nothing
    bench.store.error = None
    with pytest.raises(UnknownConversation):
        await bench.go_on(2)


async def test_a_question_the_log_did_not_take_is_taken_back() -> None:
    bench = Bench()
    asked = await bench.begin()
    with pytest.raises(Retryable):
        await bench.follow(asked, Retryable("no broker"))
    assert await bench.states() == []
    assert await bench.go_on(2) == ()


async def test_a_stream_that_breaks_later_leaves_the_question() -> None:
    bench = Bench()
    asked = await bench.begin()
    accepted = Accepted(request_id=asked.request_id, conversation_id=asked.conversation_id)
    with pytest.raises(Retryable):
        await bench.follow(asked, accepted, Retryable("no broker"))
    assert await bench.states() == ["pending"]


async def test_an_answer_to_a_conversation_that_was_deleted_does_not_bring_it_back() -> None:
    bench = Bench()
    asked = await bench.begin()
    await bench.conversations.delete(OWNER, ID)
    assert await bench.follow(asked, answer("Daily."), Done()) == ["answer", "done"]
    assert bench.store.kept == {}


async def test_undo_takes_back_pair_by_pair_and_a_late_answer_does_not_bring_one_back() -> None:
    bench = Bench()
    await bench.follow(await bench.begin(), answer("Daily."), Done())
    await bench.go_on(2)
    left, taken = await bench.conversations.undo(OWNER, ID)
    assert (taken.request_id, [turn.request_id for turn in left.turns]) == ("request-0002", ["request-0001"])
    await bench.follow(bench.ask(2), answer("Late."), Done())
    assert await bench.states() == ["answered"]
    await bench.conversations.undo(OWNER, ID)
    with pytest.raises(NoTurn):
        await bench.conversations.undo(OWNER, ID)


@pytest.mark.parametrize(
    ("text", "lang"), [("Sauna?", "de"), ("And what does it cost on Sundays?", "en"), ("Und am Sonntag?", "de")]
)
async def test_what_no_words_tell_is_in_the_language_of_the_conversation(text: str, lang: str) -> None:
    bench = Bench()
    german = bench.ask(1).model_copy(update={"lang": "de"})
    await bench.conversations.begin(OWNER, german, HERE)
    await bench.follow(german, answer("Täglich."), Done())
    further = bench.ask(2).model_copy(update={"question": text})
    asked = await bench.conversations.go_on(OWNER, further, HERE, languages=("en", "de"))
    [turn] = [turn for turn in (await bench.conversations.get(OWNER, ID)).turns if turn.request_id == "request-0002"]
    assert (asked.lang, turn.lang) == (lang, lang)


@pytest.mark.parametrize(
    ("before", "text", "guessed"), [(True, "Sauna?", True), (False, "Sauna?", False), (True, "Und am Sonntag?", False)]
)
async def test_a_guess_goes_on_until_words_tell_the_language(before: bool, text: str, guessed: bool) -> None:
    bench = Bench()
    first = bench.ask(1).model_copy(update={"lang": "de", "guessed": before})
    await bench.conversations.begin(OWNER, first, HERE)
    await bench.follow(first, answer("Täglich."), Done())
    further = bench.ask(2).model_copy(update={"question": text})
    asked = await bench.conversations.go_on(OWNER, further, HERE, languages=("de", "en"))
    assert asked.guessed is guessed
    assert (await bench.conversations.last(OWNER, ID)).guessed is guessed


async def test_a_language_that_was_named_is_kept() -> None:
    bench = Bench()
    await bench.follow(await bench.begin(), answer("Daily."), Done())
    named = bench.ask(2).model_copy(update={"question": "Sauna?", "lang": "fr"})
    assert (await bench.conversations.go_on(OWNER, named, HERE)).lang == "fr"


async def test_asking_again_forgets_the_answer_it_replaces() -> None:
    bench = Bench()
    await bench.follow(await bench.begin(), answer("First."), Done())
    await bench.go_on(2)
    await bench.follow(bench.ask(2), answer("Bad."), Done())
    asked = await bench.conversations.go_on(OWNER, bench.ask(3), HERE, replaces="request-0002")
    assert asked.history == (Turn(question="Question 1?", answer="First.", lang="en"),)
    assert await bench.states() == ["answered", "pending"]


async def test_an_answer_comes_back_when_its_question_cannot_be_asked_again() -> None:
    bench = Bench()
    await bench.follow(await bench.begin(), answer("Good."), Done())
    for n in (2, 3):
        await bench.conversations.go_on(OWNER, bench.ask(n), HERE, replaces="request-0001")
        assert await bench.states() == ["pending"]
        with pytest.raises(Retryable):
            await bench.follow(bench.ask(n), Retryable("no broker"))
        assert await bench.states() == ["answered"]


async def test_an_answer_comes_back_when_nothing_comes_of_asking_again() -> None:
    bench = Bench()
    await bench.follow(await bench.begin(), answer("Good."), Done())
    await bench.conversations.go_on(OWNER, bench.ask(2), HERE, replaces="request-0001")
    bench.now += timedelta(seconds=90) + 2 * GRACE  # the gateway died before it could send the question
    assert await bench.states() == ["answered", "failed"]
    await bench.conversations.go_on(OWNER, bench.ask(3), HERE, replaces="request-0002")
    await bench.follow(bench.ask(3), Failed(code="model", message=""), Done())
    assert await bench.states() == ["answered", "failed"]
    await bench.conversations.go_on(OWNER, bench.ask(4), HERE, replaces="request-0003")
    await bench.follow(bench.ask(4), answer("Better."), Done())
    [turn] = (await bench.conversations.get(OWNER, ID)).turns
    assert turn.answer == "Better."
    left, _ = await bench.conversations.undo(OWNER, ID)
    assert left.turns == ()


async def test_feedback_belongs_to_an_answer_and_the_newest_counts() -> None:
    bench = Bench()
    asked = await bench.begin()
    for rating, comment in (("up", None), ("down", "The price is wrong.")):
        said = Feedback.model_validate({"rating": rating, "comment": comment, "at": NOON})
        await bench.conversations.rate(OWNER, asked.request_id, said)
    [turn] = (await bench.conversations.get(OWNER, ID)).turns
    assert turn.feedback is not None
    assert (turn.feedback.rating, turn.feedback.comment) == ("down", "The price is wrong.")


@pytest.mark.parametrize(
    "stranger",
    [
        ConversationOwner("town", "visitor:v2"),
        ConversationOwner("other", "visitor:v1"),
        ConversationOwner("town", "key:a"),
    ],
)
async def test_nobody_else_finds_anything(stranger: ConversationOwner) -> None:
    bench = Bench()
    asked = await bench.begin()
    conversations = bench.conversations
    said = Feedback(rating="up", at=NOON)
    attempts: list[Awaitable[object]] = [
        conversations.get(stranger, ID),
        conversations.go_on(stranger, bench.ask(2), HERE),
        conversations.rename(stranger, ID, "mine"),
        conversations.undo(stranger, ID),
        conversations.last(stranger, ID),
        conversations.delete(stranger, ID),
    ]
    for attempt in attempts:
        with pytest.raises(UnknownConversation):
            await attempt
    attempts = [
        conversations.rate(stranger, asked.request_id, said),
        conversations.stopped(stranger, asked.request_id),
        conversations.accepted(stranger, asked.request_id),
    ]
    for attempt in attempts:
        with pytest.raises(UnknownAnswer):
            await attempt
    assert (await conversations.list(stranger, timedelta())).model_dump() == dict.fromkeys(
        ("today", "yesterday", "last_week", "older"), ()
    )
    assert await bench.states() == ["pending"]
