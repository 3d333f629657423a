"""A conversation gets a title in the background, once, and only as long as nobody has given it another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from datetime import timedelta

import pytest

from pipelines.conversations.ask import Followed
from pipelines.conversations.conversations import Conversations, UnknownConversation
from pipelines.conversations.titles import AT_ONCE, Titles
from pipelines.conversations.turns import ConversationOwner
from pipelines.runtime.errors import Retryable
from schemas.answer import Answered, AnswerEvent, Done, Event, Failed
from schemas.query import Question
from tests.asking import NOON, question
from tests.fakes.conversations import FakeConversations

OWNER = ConversationOwner("town", "visitor:v1")
ID = "conversation-1"
HERE = "3.4.1"
ANSWER = Answered(text="Daily.", citations=(), sources=(), extractive=False)
HELLO = Answered(text="Hello!", citations=(), sources=(), extractive=True, strategy="courtesy")


class Writer:
    """Waits until it is let go, then says its title."""

    def __init__(self, title: str | Exception | None = "Opening hours") -> None:
        self.title = title
        self.asked: list[tuple[str, str, str, str]] = []
        self.go = asyncio.Event()
        self.go.set()

    async def write(self, site: str, lang: str, question: str, answer: str) -> str | None:
        self.asked.append((site, lang, question, answer))
        await self.go.wait()
        if isinstance(self.title, Exception):
            raise self.title
        return self.title


class NoLog:
    async def recorded(self, site: str, request_id: str, position: str) -> AsyncGenerator[Followed, None]:
        for nothing in ():
            yield nothing


class Bench:
    def __init__(self, writer: Writer) -> None:
        self.store = FakeConversations()
        self.writer = writer
        self.titles = Titles(writer.write)
        self.conversations = Conversations(self.store, NoLog(), 15, lambda: NOON, self.titles)
        self.asked = 0

    async def ask(self, *events: Event, groups: tuple[str, ...] = (), titled: bool = True) -> Question:
        """Ask one more question and follow its answer."""
        self.asked += 1
        update = {"request_id": f"request-{self.asked:04}", "deadline": NOON + timedelta(seconds=90), "groups": groups}
        asked = question(f"Question {self.asked}?").model_copy(update=update)
        if self.asked == 1:
            await self.conversations.begin(OWNER, asked, HERE)
        else:
            await self.conversations.go_on(OWNER, asked, HERE)

        async def source() -> AsyncGenerator[Followed, None]:
            for event in events:
                yield Followed(HERE, AnswerEvent(request_id=asked.request_id, seq=0, event=event))

        assert [each async for each in self.conversations.follow(OWNER, asked, source(), titled=titled)]
        return asked

    async def title(self) -> str:
        return (await self.conversations.get(OWNER, ID)).title

    async def idle(self) -> None:
        """Until all that was begun is done."""
        async with asyncio.timeout(5):
            await asyncio.gather(*self.titles._tasks)


async def test_the_first_answer_gives_a_title_and_nobody_waits_for_it() -> None:
    bench = Bench(Writer())
    bench.writer.go.clear()
    await bench.ask(ANSWER, Done())
    assert await bench.title() == "Question 1?"
    bench.writer.go.set()
    await bench.idle()
    assert await bench.title() == "Opening hours"
    assert bench.writer.asked == [("town", "en", "Question 1?", "Daily.")]
    await bench.ask(ANSWER, Done())
    await bench.idle()
    assert len(bench.writer.asked) == 1  # once


async def test_a_greeting_is_no_title_and_what_is_asked_after_it_is() -> None:
    bench = Bench(Writer())
    await bench.ask(HELLO, Done())
    assert bench.writer.asked == []
    await bench.ask(ANSWER, Done())
    await bench.idle()
    assert bench.writer.asked == [("town", "en", "Question 2?", "Daily.")]
    assert await bench.title() == "Opening hours"


@pytest.mark.parametrize("title", [None, Retryable("the model is away"), RuntimeError("a mistake of ours")])
async def test_where_none_comes_the_question_stays_and_three_answers_are_enough(title: str | Exception | None) -> None:
    bench = Bench(Writer(title))
    for _ in range(5):
        await bench.ask(ANSWER, Done())
        await bench.idle()
    assert await bench.title() == "Question 1?"
    assert len(bench.writer.asked) == 3


@pytest.mark.parametrize(
    "events",
    [
        (Failed(code="timeout", message="Late."), Done()),
        (ANSWER.model_copy(update={"stopped": True}), Done()),
        (ANSWER.model_copy(update={"text": ""}), Done()),
    ],
    ids=["failed", "stopped", "empty"],
)
async def test_what_was_not_answered_has_no_title(events: tuple[Event, ...]) -> None:
    bench = Bench(Writer())
    await bench.ask(*events)
    assert bench.writer.asked == []


async def test_only_whoever_wants_one_gets_one() -> None:
    bench = Bench(Writer())
    await bench.ask(ANSWER, Done(), titled=False)
    assert bench.writer.asked == []
    without = Conversations(FakeConversations(), NoLog(), 15, lambda: NOON)
    bench.conversations, bench.asked = without, 0
    await bench.ask(ANSWER, Done())


async def test_what_only_groups_may_read_is_in_no_title() -> None:
    bench = Bench(Writer())
    await bench.ask(ANSWER, Done(), groups=("staff",))
    await bench.idle()
    assert bench.writer.asked == [("town", "en", "Question 1?", "")]


async def test_a_visitors_own_title_stays() -> None:
    bench = Bench(Writer())
    bench.writer.go.clear()
    await bench.ask(ANSWER, Done())
    await bench.conversations.rename(OWNER, ID, "Mine")
    bench.writer.go.set()
    await bench.idle()
    assert await bench.title() == "Mine"
    await bench.ask(ANSWER, Done())
    assert len(bench.writer.asked) == 1


async def test_a_conversation_that_is_deleted_meanwhile_does_not_come_back() -> None:
    bench = Bench(Writer())
    bench.writer.go.clear()
    await bench.ask(ANSWER, Done())
    await bench.conversations.delete(OWNER, ID)
    bench.writer.go.set()
    await bench.idle()
    with pytest.raises(UnknownConversation):
        await bench.title()


async def test_a_title_and_the_next_question_do_not_lose_each_other() -> None:
    bench = Bench(Writer())
    bench.writer.go.clear()
    await bench.ask(ANSWER, Done())
    await bench.ask(ANSWER, Done())
    bench.writer.go.set()
    await bench.idle()
    found = await bench.conversations.get(OWNER, ID)
    assert (found.title, len(found.turns)) == ("Opening hours", 2)


async def test_only_so_many_are_written_at_once_and_closing_ends_them() -> None:
    writer = Writer()
    writer.go.clear()
    bench = Bench(writer)
    turn = await bench.conversations.last(OWNER, (await bench.ask(ANSWER, titled=False)).conversation_id)
    kept: list[str] = []

    async def keep(title: str) -> None:
        kept.append(title)

    for _ in range(AT_ONCE + 5):
        bench.titles.begin("town", turn, keep)
    await asyncio.sleep(0)  # each of them begins
    await bench.titles.aclose()
    writer.go.set()
    assert (len(writer.asked), kept) == (AT_ONCE, [])
