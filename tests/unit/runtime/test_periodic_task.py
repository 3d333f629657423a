"""Doing something every so many seconds."""

from __future__ import annotations

import asyncio

from pipelines.runtime.periodic_task import PeriodicTask
from tests import skipping_time


def test_it_is_done_at_once_and_again_whatever_went_wrong_until_it_is_closed() -> None:
    times: list[float] = []

    async def fails() -> None:
        times.append(asyncio.get_running_loop().time())
        raise RuntimeError("odd")

    async def scene() -> None:
        task = PeriodicTask("job", 5.0, fails)
        began = asyncio.get_running_loop().time()
        await task.start()
        assert len(times) == 1
        await asyncio.sleep(12)
        await task.aclose()
        await asyncio.sleep(60)
        assert [round(at - began) for at in times] == [0, 5, 10]

    skipping_time.run(scene())


def test_it_may_begin_later_and_need_not_have_begun_to_be_closed() -> None:
    done: list[int] = []

    async def once() -> None:
        done.append(1)

    async def scene() -> None:
        await PeriodicTask("job", 5.0, once).aclose()
        task = PeriodicTask("job", 5.0, once)
        await task.start(at_once=False)
        assert done == []
        await asyncio.sleep(6)
        assert done == [1]
        await task.aclose()

    skipping_time.run(scene())
