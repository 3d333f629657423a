"""A thread that gives way takes those it starts along, and nobody else."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from adapters.embedders.model_threads import SAVE, ModelThreads
from pipelines.runtime.niceness import NICEST, thread_gives_way

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="niceness of threads")


def niceness() -> int:
    return os.getpriority(os.PRIO_PROCESS, 0)


def nicer(by: int) -> int:
    """As nice as that, or as nice as one can be."""
    return min(by, NICEST)


def in_a_thread(*by: int) -> list[int]:
    """How nice a thread is after each of these, and at last how nice one is that it starts."""
    told: list[int] = []

    def work() -> None:
        for one in by:
            thread_gives_way(one)
            told.append(niceness())
        inner = threading.Thread(target=lambda: told.append(niceness()))
        inner.start()
        inner.join()

    outer = threading.Thread(target=work)
    outer.start()
    outer.join()
    return told


def test_a_thread_and_those_it_starts_give_way_but_not_the_process() -> None:
    before = niceness()
    assert in_a_thread(nicer(before + 3)) == [nicer(before + 3)] * 2
    assert niceness() == before


def test_there_is_no_way_back_and_none_is_tried() -> None:
    before = niceness()
    assert in_a_thread(nicer(before + 3), 0, nicer(before + 1)) == [nicer(before + 3)] * 4


def test_the_nicest_computes_when_nobody_else_does() -> None:
    def policies() -> list[int]:
        before = os.sched_getscheduler(0)
        thread_gives_way(NICEST)
        return [before, os.sched_getscheduler(0)]

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(policies).result() == [os.SCHED_OTHER, os.SCHED_IDLE]
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


PROCESS = """
import os
from pipelines.runtime.niceness import AUTOGROUP, give_way

def session():
    # Empty for a session that began before the kernel had groups: it shares the root's.
    told = AUTOGROUP.read_text().split() if AUTOGROUP.exists() else []
    return told[-1] if told else "-"

before = session()
give_way(7)
print(os.getpriority(os.PRIO_PROCESS, 0), before, session())
"""


@pytest.mark.parametrize(("own_session", "session"), [(True, "7"), (False, None)])
def test_a_process_takes_its_session_along_only_when_it_has_one_of_its_own(
    own_session: bool, session: str | None
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROCESS], capture_output=True, text=True, check=True, start_new_session=own_session
    )
    nice, before, after = done.stdout.split()
    assert int(nice) == max(7, niceness())
    assert after == (before if before == "-" else session or before)


async def test_a_model_gives_way_where_its_worker_is_told_to() -> None:
    before = niceness()
    thread = ModelThreads("test", nice=nicer(before + 7))
    try:
        assert await thread.run(niceness, priority=SAVE) == nicer(before + 7)
        assert await asyncio.to_thread(niceness) == niceness() == before
    finally:
        await thread.aclose()
