"""A try's limit counts what it works, not what it waits."""

from __future__ import annotations

import asyncio

import pytest

from pipelines.runtime.try_limit import TryLimit, TryQueue, progressed
from tests import skipping_time


def test_a_try_that_does_not_get_on_is_cut_off() -> None:
    async def scenario() -> float:
        limit = TryLimit(10.0)
        begun = asyncio.get_running_loop().time()

        async def work() -> None:
            async with limit:
                await asyncio.sleep(8)
                progressed()
                await asyncio.sleep(60)

        with pytest.raises(TimeoutError):
            await work()
        assert limit.expired()
        limit.progressed()  # too late: nothing
        return asyncio.get_running_loop().time() - begun

    assert 18 <= skipping_time.run(scenario()) < 19


def test_whoever_waits_in_a_line_that_moves_is_not_late() -> None:
    async def scenario() -> list[str]:
        line, turn, ended = TryQueue(), asyncio.Lock(), list[str]()

        async def page(name: str) -> None:
            async with TryLimit(10.0):
                with line.place():
                    async with turn:
                        await asyncio.sleep(8)
            ended.append(name)

        await asyncio.gather(*map(page, "abcdefgh"))
        return ended

    assert skipping_time.run(scenario()) == list("abcdefgh")


def test_a_line_that_stands_still_holds_nobody_for_longer_than_the_limit() -> None:
    async def scenario() -> list[bool]:
        line, turn = TryQueue(), asyncio.Lock()

        async def page(seconds: float) -> None:
            async with TryLimit(10.0):
                with line.place():
                    async with turn:
                        await asyncio.sleep(seconds)

        results = await asyncio.gather(page(1_000), page(1), page(1), return_exceptions=True)
        return [isinstance(result, TimeoutError) for result in results]

    assert skipping_time.run(scenario())[0] is True


async def test_outside_of_a_try_nothing_is_limited() -> None:
    progressed()
    with TryQueue().place():
        await asyncio.sleep(0)
