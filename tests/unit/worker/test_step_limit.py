"""A handler that keeps the event loop to itself is interrupted, and nobody else is."""

from __future__ import annotations

import asyncio
import hashlib
import re
import signal
import threading
import time
from collections.abc import Callable

import pytest

from pipelines.runtime.try_limit import TryLimit
from worker.step_limit import StepTooLong, step_limits

LIMIT, TICK = 0.1, 0.04  # seconds of processor time


@pytest.fixture(autouse=True)
def short_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worker.step_limit.TICK", TICK)


def backtracks() -> None:
    re.match(r"(a+)+$", "a" * 60 + "b")


def loops() -> None:
    while True:
        pass


async def tried(work: Callable[[], None]) -> None:
    async with TryLimit(60, step=LIMIT):
        work()


@pytest.mark.parametrize("work", [backtracks, loops])
async def test_what_spins_is_interrupted_in_its_own_task_and_the_others_go_on(work: Callable[[], None]) -> None:
    with step_limits():
        spinning = asyncio.create_task(tried(work))
        other = asyncio.create_task(asyncio.sleep(0, "done"))
        with pytest.raises(StepTooLong, match=r"0\.1 s of processor time"):
            await spinning
        assert await other == "done"


async def test_a_handler_that_catches_it_and_spins_on_is_interrupted_again() -> None:
    async def stubborn() -> int:
        async with TryLimit(60, step=LIMIT):
            for caught in range(1, 3):
                try:
                    loops()
                except StepTooLong:
                    interrupted = caught
        return interrupted

    with step_limits():
        assert await stubborn() == 2


async def test_many_short_steps_and_work_outside_of_a_try_are_left_alone() -> None:
    def spend(seconds: float) -> None:
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            pass

    async def steps() -> None:
        async with TryLimit(60, step=LIMIT):
            for _ in range(8):
                spend(LIMIT / 3)
                await asyncio.sleep(0)

    async def outlives(begun: asyncio.Event) -> None:
        await begun.wait()
        spend(3 * LIMIT)  # in the context of a try that is over

    with step_limits():
        await steps()
        spend(3 * LIMIT)
        begun = asyncio.Event()
        async with TryLimit(60, step=LIMIT):
            later = asyncio.create_task(outlives(begun))
            await asyncio.sleep(0)
        begun.set()
        await later


async def test_what_a_model_computes_in_its_thread_is_not_the_handlers_time() -> None:
    done = threading.Event()

    def compute() -> None:
        while not done.is_set():
            hashlib.pbkdf2_hmac("sha256", b"text", b"salt", 10_000)  # without Python's lock, as a model does

    thread = threading.Thread(target=compute)
    thread.start()
    try:
        with step_limits():
            async with TryLimit(60, step=LIMIT):
                end = time.process_time() + 4 * LIMIT
                while time.process_time() < end:  # one step, which gets no processor meanwhile
                    done.wait(0.01)
    finally:
        done.set()
        thread.join()


def test_afterwards_the_signal_is_what_it_was() -> None:
    before = signal.getsignal(signal.SIGPROF)
    with step_limits():
        assert signal.getsignal(signal.SIGPROF) != before
    assert signal.getsignal(signal.SIGPROF) == before
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)
