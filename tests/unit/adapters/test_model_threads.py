"""One model, one thread: who comes next is decided by who waits for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from adapters.embedders.model_threads import BULK, QUESTION, SAVE, ModelThreads


class Model:
    """Notes what it was called for; begins with a call that ends when the test says so."""

    def __init__(self) -> None:
        self.thread = ModelThreads("test")
        self.called: list[str] = []
        self.begun = asyncio.Event()
        self._gate = threading.Event()
        self.long_call = threading.Event()  # ends it

    async def hold(self) -> asyncio.Task[None]:
        """Keep the thread busy, so that what comes now has to wait."""
        loop = asyncio.get_running_loop()

        def first() -> None:
            loop.call_soon_threadsafe(self.begun.set)
            self._gate.wait()

        task = asyncio.create_task(self.thread.run(first, priority=BULK))
        await self.begun.wait()
        return task

    def release(self) -> None:
        self._gate.set()

    def call(self, name: str) -> str:
        if name == "broken":
            raise ZeroDivisionError
        if name == "long":
            self.long_call.wait()
        self.called.append(name)
        return name.upper()


@pytest.fixture
async def model() -> AsyncIterator[Model]:
    model = Model()
    yield model
    model.release()
    model.long_call.set()
    await model.thread.aclose()


async def test_a_question_comes_before_a_save_before_bulk_work(model: Model) -> None:
    first = await model.hold()
    waiting = [
        asyncio.create_task(model.thread.each(model.call, ["bulk 1", "bulk 2"], priority=BULK)),
        asyncio.create_task(model.thread.each(model.call, ["save 1", "save 2"], priority=SAVE)),
        asyncio.create_task(model.thread.run(model.call, "question", priority=QUESTION)),
    ]
    for _ in range(3):
        await asyncio.sleep(0)  # all are queued
    model.release()
    await asyncio.gather(first, *waiting)
    assert model.called == ["question", "save 1", "save 2", "bulk 1", "bulk 2"]
    assert waiting[1].result() == ["SAVE 1", "SAVE 2"]


async def test_nothing_less_urgent_gets_in_between_the_pieces_of_a_save(model: Model) -> None:
    """Where each piece is queued when the last one has ended, bulk work takes every other turn."""
    first = await model.hold()
    bulk = asyncio.create_task(model.thread.each(model.call, ["b"] * 5, priority=BULK))
    save = asyncio.create_task(model.thread.each(model.call, ["s"] * 5, priority=SAVE))
    for _ in range(3):
        await asyncio.sleep(0)
    model.release()
    await asyncio.gather(first, bulk, save)
    assert model.called == ["s"] * 5 + ["b"] * 5


async def test_after_an_error_the_rest_is_not_called(model: Model) -> None:
    first = await model.hold()
    failing = asyncio.create_task(model.thread.each(model.call, ["a", "broken", "long", "b"], priority=SAVE))
    for _ in range(3):
        await asyncio.sleep(0)
    model.release()
    await first
    with pytest.raises(ZeroDivisionError):
        await failing
    model.long_call.set()
    await model.thread.run(model.call, "next", priority=BULK)
    begun = [name for name in model.called if name != "long"]  # which may have begun when the error was heard of
    assert begun == ["a", "next"]


async def test_a_caller_that_gives_up_frees_its_places(model: Model) -> None:
    first = await model.hold()
    given_up = asyncio.create_task(model.thread.each(model.call, ["a", "b"], priority=SAVE))
    for _ in range(3):
        await asyncio.sleep(0)
    given_up.cancel()
    with pytest.raises(asyncio.CancelledError):
        await given_up
    model.release()
    await first
    await model.thread.run(model.call, "next", priority=BULK)
    assert model.called == ["next"]


async def test_as_many_calls_run_at_once_as_there_are_threads() -> None:
    threads = ModelThreads("test", count=2)
    both = threading.Barrier(2)
    await threads.each(lambda _: both.wait(timeout=10), [1, 2], priority=SAVE)
    await threads.aclose()


async def test_who_is_starved_is_relieved() -> None:
    """A thread that never gets a processor again, with one call in its hands and one that waits."""
    starved, names = threading.Event(), []

    def call(name: str) -> str:
        names.append(threading.current_thread().name)
        if "test" in names[-1]:
            starved.wait()
        return name.upper()

    threads = ModelThreads("test", nice=1, patience=0.2)
    try:
        assert await threads.each(call, ["at work", "waiting"], priority=BULK) == ["AT WORK", "WAITING"]
        assert [name.startswith("test") for name in names] == [True, False, False]
    finally:
        starved.set()
        await threads.aclose()


async def test_who_has_waited_for_nothing_is_not_starved() -> None:
    names = []
    threads = ModelThreads("test", nice=1, patience=0.2)
    try:
        for _ in range(2):
            await threads.run(lambda: names.append(threading.current_thread().name), priority=BULK)
            await asyncio.sleep(0.3)
        assert names == ["test_0", "test_0"]
    finally:
        await threads.aclose()


async def test_the_threads_end_when_all_that_was_queued_is_done() -> None:
    def ours() -> list[str]:
        return [thread.name for thread in threading.enumerate() if thread.name.startswith("test-ends")]

    model, begun, gate = ModelThreads("test-ends"), threading.Event(), threading.Event()

    def hold() -> bool:
        begun.set()
        return gate.wait(timeout=10)

    held = asyncio.create_task(model.run(hold, priority=BULK))
    waiting = asyncio.create_task(model.run(ours, priority=BULK))
    await asyncio.to_thread(begun.wait)
    closing = asyncio.create_task(model.aclose())
    await asyncio.sleep(0)
    gate.set()
    assert await held
    assert await waiting == ["test-ends_0"]
    await closing
    assert not ours()
    with pytest.raises(RuntimeError):
        await model.run(ours, priority=QUESTION)


@pytest.mark.parametrize(("nice", "patience"), [(0, 0.1), (1, None)])
async def test_only_what_gives_way_and_is_impatient_is_relieved(nice: int, patience: float | None) -> None:
    threads = ModelThreads("test", nice=nice, patience=patience)
    names = []

    def call() -> None:
        names.append(threading.current_thread().name)
        threading.Event().wait(0.3)

    await threads.run(call, priority=BULK)
    await threads.aclose()
    assert names == ["test_0"]
