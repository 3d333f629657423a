"""A limit rings when the last time that was set has come, however often it was set, and leaves no timer behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable

import pytest

from gateway.chat.late import Late
from gateway.chat.sse import Patient
from pipelines.conversations.ask import Followed
from pipelines.runtime.errors import Retryable
from schemas.answer import AnswerEvent, Token

EVENTS = 200


class Timers:
    """Counts the timers of the running loop, whose clock it moves by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.made: list[tuple[float, Callable[[], None]]] = []
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "time", lambda: self.now)
        monkeypatch.setattr(loop, "call_at", self._call_at)

    def _call_at(self, when: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        self.made.append((when, callback))
        return asyncio.TimerHandle(when, callback, (), asyncio.get_running_loop())

    def go_off(self) -> None:
        """The timer that was made last."""
        self.now, callback = self.made[-1]
        callback()


@pytest.fixture
async def timers(monkeypatch: pytest.MonkeyPatch) -> Timers:
    return Timers(monkeypatch)


async def test_it_rings_once(timers: Timers) -> None:
    rung: list[float] = []
    late = Late(lambda: rung.append(timers.now))
    late.set(10)
    timers.go_off()
    assert (rung, len(timers.made)) == ([10], 1)


async def test_what_came_in_time_does_not_ring(timers: Timers) -> None:
    rung: list[float] = []
    late = Late(lambda: rung.append(timers.now))
    late.set(10)
    late.clear()
    timers.go_off()
    assert (rung, len(timers.made)) == ([], 1)
    late.set(10)
    timers.go_off()
    assert rung == [20]


async def test_set_again_and_again_it_takes_one_timer(timers: Timers) -> None:
    rung: list[float] = []
    late = Late(lambda: rung.append(timers.now))
    for timers.now in range(9):
        late.set(10)
        late.clear()
    late.set(10)
    assert [when for when, _ in timers.made] == [10]
    timers.go_off()  # at 10, and it was set at 8
    assert (rung, timers.made[-1][0]) == ([], 18)
    timers.go_off()
    assert rung == [18]


async def test_a_shorter_time_counts(timers: Timers) -> None:
    rung: list[float] = []
    late = Late(lambda: rung.append(timers.now))
    late.set(10)
    late.set(3)
    timers.go_off()
    assert rung == [3]


async def test_closed_it_leaves_no_timer() -> None:
    rung: list[bool] = []
    late = Late(lambda: rung.append(True))
    late.set(0)
    late.close()
    for _ in range(10):
        await asyncio.sleep(0)
    assert rung == []


def event(seq: int) -> Followed:
    return Followed(f"0.{seq}.1", AnswerEvent(request_id="request-1", seq=seq, event=Token(text="word ")))


async def test_events_that_come_in_time_take_no_timer_and_no_task_each(monkeypatch: pytest.MonkeyPatch) -> None:
    async def words() -> AsyncGenerator[Followed, None]:
        for seq in range(EVENTS):
            await asyncio.sleep(0)
            yield event(seq)

    loop, made = asyncio.get_running_loop(), {"call_at": 0, "create_task": 0}
    for name in made:
        true = getattr(loop, name)

        def counted(*args: object, name: str = name, true: Callable[..., object] = true, **kwargs: object) -> object:
            made[name] += 1
            return true(*args, **kwargs)

        monkeypatch.setattr(loop, name, counted)
    events, seen = Patient(words()), 0
    while await events.ready(60) and await events.take() is not None:
        seen += 1
    await events.aclose()
    assert seen == EVENTS
    assert made == {"call_at": 1, "create_task": 1}


async def test_who_gives_up_waiting_misses_nothing() -> None:
    go = asyncio.Event()

    async def words() -> AsyncGenerator[Followed, None]:
        await go.wait()
        yield event(0)
        raise Retryable("away")

    events = Patient(words())
    assert not await events.ready(0)
    assert not await events.ready(0)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await events.take()
    go.set()
    assert await events.ready(60)
    assert (await events.take()) == event(0)
    assert await events.ready(60)
    with pytest.raises(Retryable):
        await events.take()
    await events.aclose()


async def test_following_ends_where_the_source_loses_its_cancellation() -> None:
    """As asyncio.wait_for does when what it waits for is there at the same moment."""

    async def events() -> AsyncGenerator[Followed, None]:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            yield event(0)

    patient = Patient(events())
    assert not await patient.ready(0.01)
    closing = asyncio.create_task(patient.aclose())
    ended, _ = await asyncio.wait({closing}, timeout=20)
    assert ended
