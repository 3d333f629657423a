"""What pages may hold at once: never more than there is, in order, and nobody waits for ever."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.ingest.documents.budget import MemoryBudget
from pipelines.runtime.try_limit import TryLimit
from tests import skipping_time


class Pages:
    """Hold shares until the test says so."""

    def __init__(self, size: int, holders: int = 100) -> None:
        self.told: list[int] = []
        self.budget = MemoryBudget(size, holders, self.told.append)
        self.holding: dict[str, int] = {}
        self.begun: list[str] = []
        self._ends: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def come(self, name: str, size: int, *, urgent: bool = True) -> None:
        self._ends[name] = asyncio.Event()
        self._tasks[name] = asyncio.create_task(self._hold(name, size, urgent))
        await self.settle()

    async def _hold(self, name: str, size: int, urgent: bool) -> None:
        async with self.budget.take(size, urgent=urgent):
            self.begun.append(name)
            self.holding[name] = size
            try:
                await self._ends[name].wait()
            finally:
                del self.holding[name]

    async def go(self, name: str) -> None:
        self._ends[name].set()
        await self.settle()

    async def give_up(self, name: str) -> None:
        self._tasks[name].cancel()
        with suppress(asyncio.CancelledError):
            await self._tasks[name]
        await self.settle()

    async def settle(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)


async def test_who_finds_no_room_waits_until_there_is() -> None:
    pages = Pages(40)
    for name in "abcd":
        await pages.come(name, 20)
    assert pages.begun == ["a", "b"]
    await pages.go("b")
    assert pages.begun == ["a", "b", "c"]
    assert max(pages.told) == 40


async def test_one_that_is_larger_than_all_there_is_waits_alone_and_not_for_ever() -> None:
    pages = Pages(40)
    await pages.come("small", 1)
    await pages.come("huge", 100)
    await pages.come("later", 1)
    assert pages.begun == ["small"]  # later ones do not overtake it: it would wait for ever
    await pages.go("small")
    assert list(pages.holding) == ["huge"]
    await pages.go("huge")
    assert list(pages.holding) == ["later"]


async def test_saves_go_before_imports() -> None:
    pages = Pages(1)
    await pages.come("first", 1, urgent=False)
    await pages.come("import", 1, urgent=False)
    await pages.come("save", 1)
    for name in ("first", "save", "import"):
        assert list(pages.holding) == [name]
        await pages.go(name)


async def test_no_more_hold_something_than_may() -> None:
    pages = Pages(1_000, holders=2)
    for name in "abc":
        await pages.come(name, 1)
    assert pages.begun == ["a", "b"]


async def test_what_turns_out_to_be_smaller_makes_room_at_once() -> None:
    budget = MemoryBudget(40, 100)
    entered = asyncio.Event()

    async def other() -> None:
        async with budget.take(30):
            entered.set()

    async with budget.take(40) as share:
        waits = asyncio.create_task(other())
        await asyncio.sleep(0.01)
        share.shrink(50)  # a share does not grow
        assert not entered.is_set()
        share.shrink(10)
        await asyncio.wait_for(entered.wait(), 5)
    await waits
    async with asyncio.timeout(5), budget.take(40):
        pass  # all of it was given back


async def test_who_gives_up_waiting_stands_in_nobodys_way() -> None:
    pages = Pages(40)
    await pages.come("a", 20)
    await pages.come("large", 30)
    await pages.come("b", 20)
    await pages.give_up("large")
    assert pages.begun == ["a", "b"]
    await pages.give_up("a")
    await pages.give_up("b")
    assert pages.told[-1] == 0


async def test_who_gives_up_in_the_moment_it_gets_its_share_gives_it_back() -> None:
    pages = Pages(40)
    await pages.come("a", 40)
    await pages.come("b", 40)
    pages._ends["a"].set()
    while pages.holding:  # noqa: ASYNC110 - not a moment longer
        await asyncio.sleep(0)
    assert pages.told[-1] == 40  # it is b's already, which does not know yet
    await pages.give_up("b")
    assert "b" not in pages.begun
    assert pages.told[-1] == 0


names = st.integers(0, 9)


@given(st.lists(st.tuples(names, st.integers(1, 60), st.booleans()), max_size=30), st.lists(names))
def test_never_more_than_there_is_and_all_get_their_turn(arrivals: list[tuple[int, int, bool]], up: list[int]) -> None:
    async def scenario() -> None:
        pages = Pages(40, 3)

        def check() -> None:
            assert len(pages.holding) <= 3
            assert sum(pages.holding.values()) <= 40 or len(pages.holding) == 1

        came = [str(number) for number, _ in enumerate(arrivals)]
        for name, (_, size, urgent) in zip(came, arrivals, strict=True):
            await pages.come(name, size, urgent=urgent)
            check()
        gone = {str(number) for number in up if number < len(arrivals)}
        for name in sorted(gone):
            await pages.give_up(name)
            check()
        while pages.holding:
            await pages.go(next(iter(pages.holding)))
            check()
        assert set(came) == set(pages.begun) | gone
        assert not pages.told or pages.told[-1] == 0

    asyncio.run(scenario())


@pytest.mark.parametrize("tries", [1, 60])
def test_waiting_in_line_is_no_work_as_long_as_the_line_moves(tries: int) -> None:
    budget = MemoryBudget(1, 1)

    async def one() -> None:
        async with TryLimit(100.0), budget.take(1):
            await asyncio.sleep(90.0)

    async def all_of_them() -> None:
        await asyncio.gather(*(one() for _ in range(tries)))

    skipping_time.run(all_of_them())  # 60 x 90 s, and none was cut off after 100 s
