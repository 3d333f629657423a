"""Events are told as they come, together where they are there together, and nothing is made for each of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Message

from gateway.chat import sse
from gateway.chat.chat import whole
from gateway.chat.sse import HEARTBEAT, EventStream, Frames, PeekableEvents, frame
from gateway.edge.problems import Problem
from pipelines.conversations.ask import Followed
from pipelines.runtime.errors import Retryable
from schemas.answer import AnswerEvent, Done, Event, Token, read_event
from tests.asking import question

EVENTS = 200
Events = AsyncGenerator[Followed, None]


def event(seq: int, event: Event | None = None, *, more: bool = False) -> Followed:
    said = AnswerEvent(request_id="request-1", seq=seq, event=event or Token(text="word "))
    return Followed(f"0.{seq}.1", said, more)


class Told:
    """What a stream sends to a reader who stays, or leaves when told to."""

    def __init__(self, events: Events, deadline: float = 60.0) -> None:
        self.pieces: list[bytes] = []
        self.gone = asyncio.Event()
        now = asyncio.get_running_loop().time()
        self.stream = EventStream(PeekableEvents(events), Frames(str, "en"), now + deadline)

    async def whole(self) -> list[bytes]:
        async with asyncio.timeout(HEARTBEAT - 1):  # nothing waits for a beat of silence
            await self.stream({}, self._receive, self._send)
        return self.pieces

    async def _receive(self) -> Message:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if piece := message.get("body"):
            self.pieces.append(piece)


async def never() -> Any:
    await asyncio.Event().wait()


def framed(*all_followed: Followed) -> list[bytes]:
    return [frame(followed.event.event, followed.position) for followed in all_followed]


async def test_events_take_no_timer_and_no_task_each(monkeypatch: pytest.MonkeyPatch) -> None:
    async def words(count: int) -> Events:
        for seq in range(count):
            await asyncio.sleep(0)
            yield event(seq)

    loop, made = asyncio.get_running_loop(), {"call_at": 0, "create_task": 0}
    for name in made:
        true = getattr(loop, name)

        def counted(*args: object, name: str = name, true: Callable[..., object] = true, **kwargs: object) -> object:
            made[name] += 1
            return true(*args, **kwargs)

        monkeypatch.setattr(loop, name, counted)
    assert len(await Told(words(1)).whole()) == 1
    of_one = dict(made)
    assert len(await Told(words(EVENTS)).whole()) == EVENTS
    assert made == {name: 2 * count for name, count in of_one.items()}


async def test_what_is_there_together_is_sent_together() -> None:
    async def words() -> Events:
        yield event(0, more=True)
        yield event(1, more=True)
        yield event(2)
        yield event(3)

    first, second, third, fourth = framed(*(event(seq) for seq in range(4)))
    assert await Told(words()).whole() == [first + second + third, fourth]


async def test_what_was_there_before_a_source_breaks_off_is_told_before_that() -> None:
    async def words() -> Events:
        yield event(0, more=True)
        raise Retryable("away")

    [piece] = await Told(words()).whole()
    assert piece.startswith(framed(event(0))[0] + b"id: 0.0.1\nevent: error\n")


async def test_after_the_deadline_a_reader_may_come_back_to_where_they_are() -> None:
    async def words() -> Events:
        yield event(0)
        await asyncio.Event().wait()

    first, end = await Told(words(), deadline=0.01).whole()
    assert [first] == framed(event(0))
    assert end.startswith(b'id: 0.0.1\nevent: error\ndata: {"code":"timeout"')
    assert end.endswith(frame(Done(), "0.0.1"))


async def test_after_the_deadline_nothing_is_waited_for_where_the_source_does_not_hear_of_it() -> None:
    """As asyncio.wait_for does when what it waits for is there at the same moment."""

    async def words() -> Events:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            yield event(0)
        await asyncio.Event().wait()

    first, end = await Told(words(), deadline=0.01).whole()
    assert [first] == framed(event(0))
    assert b"timeout" in end


async def test_a_whole_answer_is_not_waited_for_after_its_deadline_either() -> None:
    async def words() -> Events:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            yield event(0)
        await asyncio.Event().wait()

    deadline = asyncio.get_running_loop().time() + 0.01
    with pytest.raises(Problem) as told:
        async with asyncio.timeout(20):
            await whole(PeekableEvents(words()), question(), deadline, never, never)
    assert told.value.status == 504


@pytest.mark.parametrize("heard", [True, False])
async def test_a_whole_answer_is_stopped_when_nobody_waits_for_it_any_more(heard: bool) -> None:
    gone, closed, stopped = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def words() -> Events:
        try:
            yield event(0)
            gone.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if heard:
                raise
            yield event(1)
            await asyncio.Event().wait()
        finally:
            closed.set()

    async def receive() -> Message:
        await gone.wait()
        return {"type": "http.disconnect"}

    async def stop() -> None:
        assert closed.is_set()
        stopped.set()

    with pytest.raises(ClientDisconnect):
        async with asyncio.timeout(20):
            await whole(PeekableEvents(words()), question(), asyncio.get_running_loop().time() + 60, receive, stop)
    assert stopped.is_set()


async def test_a_stream_ends_where_the_source_does_not_hear_that_its_reader_has_left() -> None:
    async def words() -> Events:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            yield event(0)
        await asyncio.Event().wait()

    told = Told(words())
    telling = asyncio.create_task(told.whole())
    await asyncio.sleep(0)
    told.gone.set()
    await telling
    assert told.pieces == []


async def test_a_reader_who_takes_no_comment_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "HEARTBEAT", 0.01)
    monkeypatch.setattr(sse, "SEND_TIMEOUT", 0.01)

    class Stuck(Told):
        async def _send(self, message: Message) -> None:
            if message.get("body"):
                await asyncio.Event().wait()

    async def words() -> Events:
        await asyncio.Event().wait()
        yield event(0)

    assert await Stuck(words()).whole() == []


async def test_a_token_is_told_as_it_is_written() -> None:
    """What is handed on without being read is what would be told if it were."""
    message = AnswerEvent(request_id="request-1", site="town", seq=3, event=Token(text='"Ä" costs\n\\ 3 €\u2028'))
    frames = Frames(str, "en")
    told = frames.event(Followed("0.3.1", read_event(message.encode())))
    assert told == frames.event(Followed("0.3.1", message)) == frame(message.event, "0.3.1")


async def test_the_first_event_may_be_waited_for_and_taken_later() -> None:
    go = asyncio.Event()

    async def words() -> Events:
        await go.wait()
        yield event(0)
        raise Retryable("away")

    events = PeekableEvents(words())
    assert await events.begin(0)
    go.set()
    assert await events.take() == event(0)
    with pytest.raises(Retryable):
        await events.take()
    await events.aclose()


async def test_where_there_is_no_event_it_is_known_at_once() -> None:
    async def nothing() -> Events:
        for seq in range(0):
            yield event(seq)

    assert not await PeekableEvents(nothing()).begin(60)


async def test_what_fails_before_the_first_event_is_raised_and_closes_the_source() -> None:
    closed = asyncio.Event()

    async def fails() -> Events:
        try:
            raise Retryable("away")
            yield event(0)
        finally:
            closed.set()

    with pytest.raises(Retryable):
        await PeekableEvents(fails()).begin(60)
    assert closed.is_set()
