"""Following a topic: what is noted is in the index, and nothing is passed over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

import pytest

from pipelines.operate.rebuild.catch_up import CatchUp
from pipelines.operate.rebuild.index_builder import BuildTally, IndexBuilder
from pipelines.operate.rebuild.page_builder import SourceMessage
from pipelines.runtime.record import Record
from schemas.rebuild import Rebuild
from tests.making import NOON


class Topic:
    """One partition, read in batches of two."""

    def __init__(self, length: int, begin: int = 0) -> None:
        self.begin, self.end = begin, begin + length

    async def begins(self) -> dict[int, int]:
        return {0: self.begin}

    async def ends(self) -> dict[int, int]:
        return {0: self.end}

    async def read(
        self, *, since: Mapping[int, int] | None = None, until: Mapping[int, int]
    ) -> AsyncGenerator[list[Record], None]:
        at = max(self.begin, (since or {}).get(0, 0))
        while at < until[0]:
            yield [Record("t", 0, offset, b"k", b"v") for offset in range(at, min(at + 2, until[0]))]
            at += 2


class FakeFiller(IndexBuilder):
    """Remembers offsets."""

    batches = 1

    def __init__(self) -> None:
        self.tally = BuildTally()
        self.written: list[int] = []
        self.stuck_at: int | None = None
        self.stuck = asyncio.Event()
        self.error: Exception | None = None

    async def decode(self, batch: Sequence[Record]) -> dict[str, list[SourceMessage]]:
        return {str(record.offset): [] for record in batch}

    async def write(
        self, pages: Mapping[str, Sequence[SourceMessage]], settled: Callable[[int], None] = lambda _: None
    ) -> None:
        for offset in map(int, pages):
            if offset == self.stuck_at:
                if self.error is not None:
                    raise self.error
                self.stuck.set()
                await asyncio.Event().wait()
            self.written.append(offset)
            self.tally.pages += 1
            settled(1)


def rebuild(**more: object) -> Rebuild:
    made = Rebuild(
        site="town",
        generation=2,
        index="pagewire-town-000002",
        source="changes",
        follows="changes",
        embedder="fake",
        model="fake-4",
        dims=4,
        chunker="c",
        created_at=NOON,
        updated_at=NOON,
    )
    return made.model_copy(update=more)


class Bench:
    def __init__(self, topic: Topic, **noted: object) -> None:
        self.filler = FakeFiller()
        self.puts: list[Rebuild] = []
        self.told: list[Rebuild] = []
        self.follow = CatchUp(rebuild(**noted), topic, self.filler, self._put, self.told.append)

    async def _put(self, noted: Rebuild) -> None:
        self.puts.append(noted)


async def test_all_is_read_once_and_noted() -> None:
    bench = Bench(Topic(5, begin=10))
    await bench.follow.near()
    noted = await bench.follow.note(state="verified")
    assert bench.filler.written == [10, 11, 12, 13, 14]
    assert (noted.offsets, noted.pages, noted.done, noted.total, noted.state) == ({0: 15}, 5, 5, 5, "verified")
    assert bench.puts[-1] == noted
    again = await bench.follow.note()
    assert again.pages == 5  # not counted twice


async def test_it_goes_on_where_the_note_was() -> None:
    bench = Bench(Topic(5), offsets={0: 3}, pages=3)
    await bench.follow.to_end()
    assert bench.filler.written == [3, 4]
    assert (await bench.follow.note()).pages == 5


async def test_beyond_the_end_means_another_topic_and_begins_again() -> None:
    bench = Bench(Topic(2), offsets={0: 400})
    await bench.follow.to_end()
    assert bench.filler.written == [0, 1]


async def test_stopped_in_a_batch_it_notes_what_came_before() -> None:
    bench = Bench(Topic(6))
    bench.filler.stuck_at = 3
    going = asyncio.create_task(bench.follow.to_end())
    await bench.filler.stuck.wait()
    going.cancel()
    with pytest.raises(asyncio.CancelledError):
        await going
    assert bench.filler.written == [0, 1, 2]
    noted = await bench.follow.note()
    assert noted.offsets == {0: 2}
    bench.filler.stuck_at = None
    await bench.follow.to_end()
    assert bench.filler.written == [0, 1, 2, 2, 3, 4, 5]


async def test_a_batch_that_fails_ends_it_and_is_not_noted() -> None:
    bench = Bench(Topic(6))
    bench.filler.stuck_at, bench.filler.error = 2, RuntimeError("broken")
    with pytest.raises(RuntimeError, match="broken"):
        await bench.follow.to_end()
    assert (await bench.follow.note()).offsets == {0: 2}


async def test_progress_is_told_page_by_page() -> None:
    bench = Bench(Topic(3))
    await bench.follow.to_end()
    done = [told.done for told in bench.told]
    assert done == sorted(done)
    assert set(done) == {1, 2, 3}
    assert all(told.total == 3 for told in bench.told)


async def test_batches_that_workers_write_side_by_side_count_in_the_order_of_the_topic() -> None:
    bench = Bench(Topic(8))
    bench.filler.batches = 3
    bench.filler.stuck_at = 2  # in the second batch
    following = asyncio.create_task(bench.follow.to_end())
    await bench.filler.stuck.wait()
    while len(bench.filler.written) < 6:  # noqa: ASYNC110  # all but the one that is stuck
        await asyncio.sleep(0)
    noted = await bench.follow.note()
    assert (noted.offsets, noted.done, noted.pages) == ({0: 2}, 6, 6)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    bench.filler.stuck_at = None
    await bench.follow.to_end()
    assert (await bench.follow.note()).offsets == {0: 8}
    assert sorted(set(bench.filler.written)) == list(range(8))


async def test_a_batch_that_fails_ends_those_beside_it() -> None:
    bench = Bench(Topic(8))
    bench.filler.batches, bench.filler.stuck_at, bench.filler.error = 3, 2, RuntimeError("away")
    with pytest.raises(RuntimeError, match="away"):
        await bench.follow.to_end()
    assert (await bench.follow.note()).offsets == {0: 2}
