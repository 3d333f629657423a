"""Fair shares: a small site is worked on beside a large one whose records stand before its own, and nothing is lost."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.runtime.errors import Retryable
from pipelines.runtime.record import LANE_HEADER, Record
from pipelines.runtime.stage import Stage
from schemas.keys import page_key
from schemas.topics import CHUNKS, Topic
from worker import shares as module
from worker.in_flight import InFlight, Partition, RecordInFlight
from worker.offsets import OffsetBook
from worker.shares import Shares

WINDOW = 4
PLACE = (CHUNKS.name, 0)


class Log:
    """One partition of a topic; `fails` as long as the broker is away for those who look at it."""

    def __init__(self, sites: Sequence[str]) -> None:
        self.records: list[Record] = []
        bulk(self, *sites)
        self.fails = False
        self.open = 0
        self.meanwhile: Callable[[], Awaitable[None]] = settled  # while a stretch is read

    def name(self, topic: Topic) -> str:
        return topic.name

    @asynccontextmanager
    async def scan(self, topic: Topic) -> AsyncIterator[Log]:
        self.open += 1
        try:
            yield self
        finally:
            self.open -= 1

    async def ends(self) -> dict[int, int]:
        if self.fails:
            raise Retryable("away")
        return {0: len(self.records)}

    async def read(
        self, *, since: Mapping[int, int] | None = None, until: Mapping[int, int]
    ) -> AsyncGenerator[list[Record], None]:
        await asyncio.sleep(0)
        yield self.records[(since or {})[0] : until[0]]

    async def pick(self, partition: int, start: int, end: int) -> AsyncGenerator[list[Record], None]:
        await self.meanwhile()
        yield self.records[start:end]


class Worker:
    """One process: fetches, commits by the book, works on what the test lets it."""

    def __init__(self, log: Log, committed: int = 0) -> None:
        self.log = log
        self.committed = committed
        self.position = committed
        self.book: OffsetBook[Partition] = OffsetBook()
        self.waiting: dict[int, asyncio.Event] = {}
        self.begun: Counter[int] = Counter()
        self.done: list[int] = []
        self.flight = InFlight(
            window=WINDOW, order_key=lambda r: r.key or b"", work=self.work, finished=self.finished, failed=self.failed
        )
        stage = Stage("embed", {CHUNKS: cast(Any, None)}, lane="bulk")
        self.shares = Shares(stage, cast(Any, log), lambda: {PLACE}, lambda: self)
        self.flight.open()

    async def work(self, work: RecordInFlight) -> None:
        offset = work.record.offset
        self.begun[offset] += 1
        await self.waiting.setdefault(offset, asyncio.Event()).wait()

    def finished(self, record: Record) -> None:
        self.done.append(record.offset)
        self.book.finished(PLACE, record.offset)
        self.commit()

    def commit(self) -> None:
        self.committed = self.book.committable(PLACE) or self.committed

    def failed(self, err: BaseException) -> None:
        raise err

    def read_to(self, topic: str, partition: int) -> int | None:
        return self.book.read_to((topic, partition))

    def goes_on(self, topic: str, partition: int) -> bool:
        return self.position < len(self.log.records)

    def early(self, record: Record) -> bool:
        if self.book.is_early(PLACE, record.offset):
            return False
        self.book.early(PLACE, record.offset)
        return True

    async def fetch(self, most: int = 3) -> None:
        if self.flight.full(PLACE):
            return
        fetched = self.log.records[self.position : self.position + most]
        self.position += len(fetched)
        early = self.book.fetched(PLACE, [record.offset for record in fetched])
        self.commit()
        for record in fetched:
            if record.offset not in early:
                self.flight.put(record)
        await settled()

    async def look(self) -> None:
        await self.shares.look(self.flight)
        await settled()

    async def finish(self, offset: int) -> None:
        self.waiting.setdefault(offset, asyncio.Event()).set()
        await settled()

    async def waits_for(self, offset: int) -> None:
        """Until it is begun."""
        while offset not in self.begun:  # noqa: ASYNC110 - work has no other way to tell
            await asyncio.sleep(0)

    async def finish_one(self, rng: random.Random) -> None:
        if self.at_work:
            await self.finish(rng.choice(self.at_work))

    @property
    def at_work(self) -> list[int]:
        return sorted(offset for offset in self.begun if offset not in self.done)


async def settled() -> None:
    for _ in range(6):
        await asyncio.sleep(0)


def bulk(log: Log, *sites: str) -> None:
    log.records += [
        Record(CHUNKS.name, 0, n, page_key(site, "en", str(n)).encode(), b"v", ((LANE_HEADER, b"bulk"),))
        for n, site in enumerate(sites, len(log.records))
    ]


async def full(log: Log) -> Worker:
    """A worker that has fetched what it holds at most."""
    worker = Worker(log)
    while not worker.flight.full(PLACE):
        await worker.fetch()
    return worker


async def test_a_small_site_is_worked_on_beside_an_import_that_stands_before_it() -> None:
    log = Log(["town"] * 500 + ["museum"] * 3)
    worker = await full(log)
    assert worker.at_work == [0, 1, 2, 3]
    await worker.look()
    assert worker.at_work == [0, 1, 2, 3, 500, 501, 502]
    for offset in (500, 501, 502):
        await worker.finish(offset)
    assert worker.committed == 0  # nothing is committed past what is not finished
    assert worker.at_work == [0, 1, 2, 3]
    await worker.flight.drain(0)


async def test_what_was_early_is_worked_on_once_and_committed_in_its_turn() -> None:
    log = Log(["town"] * 20 + ["museum"] * 2 + ["town"])
    worker = await full(log)
    await worker.look()
    await worker.finish(20)  # 21 is at work still when it is fetched
    while worker.position < len(log.records) or worker.at_work != [21]:
        await worker.fetch()
        for offset in worker.at_work:
            if offset != 21:
                await worker.finish(offset)
    assert worker.committed == 21
    await worker.finish(21)
    assert worker.committed == 23
    assert set(worker.begun.values()) == {1}


async def test_what_is_fetched_while_it_is_read_is_worked_on_once() -> None:
    log = Log(["town"] * 12 + ["museum"] * 2 + ["town"] * 12)
    worker = await full(log)

    async def fetched_meanwhile() -> None:
        while worker.position < 14:
            await worker.finish(worker.at_work[0])
            await worker.fetch()

    log.meanwhile = fetched_meanwhile
    await worker.look()
    while len(worker.done) < len(log.records):
        await worker.finish(worker.at_work[0])
        await worker.fetch()
    assert set(worker.begun.values()) == {1}
    assert worker.committed == len(log.records)


async def test_sites_take_turns_behind_an_import() -> None:
    log = Log(["town"] * 50 + ["museum"] * 50 + ["school"] * 50)
    worker = await full(log)
    await worker.look()
    assert worker.at_work == [0, 1, 2, 3, 50, 51, 52, 100]
    await worker.finish(50)
    await worker.finish(51)
    await worker.look()
    assert worker.at_work == [0, 1, 2, 3, 52, 53, 100, 101]
    await worker.flight.drain(0)


async def test_who_comes_while_the_import_goes_on_is_seen() -> None:
    log = Log(["town"] * 50)
    worker = await full(log)
    await worker.look()
    assert worker.at_work == [0, 1, 2, 3]
    bulk(log, "museum")
    await worker.look()
    assert worker.at_work == [0, 1, 2, 3, 50]
    await worker.flight.drain(0)


async def test_saves_and_what_has_no_site_are_left_alone() -> None:
    log = Log(["town"] * 50 + ["museum"] * 2)
    log.records[50] = Record(CHUNKS.name, 0, 50, page_key("museum", "en", "saved").encode(), b"v")
    log.records[51] = Record(CHUNKS.name, 0, 51, b"nonsense", b"v", ((LANE_HEADER, b"bulk"),))
    worker = await full(log)
    await worker.look()
    assert worker.at_work == [0, 1, 2, 3]
    await worker.flight.drain(0)


async def test_partitions_that_are_given_away_take_what_was_early_with_them() -> None:
    log = Log(["town"] * 50 + ["museum"])
    worker = await full(log)
    await worker.look()
    await worker.flight.drain(0)
    worker.book.forget([PLACE])
    worker.position = 0
    worker.flight.open()
    await worker.look()  # nothing was fetched of it yet
    assert worker.begun[50] == 1
    while not worker.flight.full(PLACE):
        await worker.fetch()
    await worker.look()
    assert worker.begun[50] == 2
    await worker.flight.drain(0)


async def test_partitions_that_go_while_the_log_is_read_get_nothing() -> None:
    log = Log(["town"] * 50 + ["museum"])
    worker = await full(log)
    looking = asyncio.create_task(worker.shares.look(worker.flight))
    await asyncio.sleep(0)
    await worker.flight.drain(0)
    await looking
    assert not worker.book.is_early(PLACE, 50)
    assert worker.begun[50] == 0


async def test_nobody_looks_where_nothing_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "IDLE_LOOKS", 2)
    log = Log(["town"] * 3)
    worker = Worker(log)
    await worker.fetch()
    await worker.look()
    assert log.open == 0
    bulk(log, *["town"] * 9)
    await worker.look()
    assert log.open == 1
    await worker.fetch(9)
    for offset in range(12):
        await worker.finish(offset)
    await worker.look()
    assert log.open == 1
    await worker.look()
    assert log.open == 0


async def test_everybody_waits_their_turn_while_the_log_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_EVERY", 0.0)
    monkeypatch.setattr(module, "AFTER_FAILURE", 0.0)
    log = Log(["town"] * 50 + ["museum"])
    worker = await full(log)
    log.fails = True
    attending = asyncio.create_task(worker.shares.attend(worker.flight))
    await settled()
    assert worker.at_work == [0, 1, 2, 3]
    assert not attending.done()
    log.fails = False
    await worker.waits_for(50)
    attending.cancel()
    await asyncio.wait({attending})
    assert log.open == 0
    await worker.flight.drain(0)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=60), st.integers(0, 2**32), st.integers(0, 3))
def test_whatever_happens_everything_is_worked_on_and_the_commit_passes_nothing(
    sites: list[str], seed: int, deaths: int
) -> None:
    """Fetches, looks, ends of work and deaths in any order."""

    async def scenario() -> None:
        rng, log, left, committed = random.Random(seed), Log(sites), deaths, 0
        done: set[int] = set()
        worker = Worker(log)
        while worker.committed < len(sites):
            acts: list[Callable[[], Any]] = [worker.fetch, worker.look, *[partial(worker.finish_one, rng)] * 3]
            await rng.choice(acts)()
            done |= set(worker.done)
            assert set(range(worker.committed)) <= done
            assert set(worker.begun.values()) <= {1}
            if left and rng.random() < 0.02:
                left, committed = left - 1, worker.committed
                await worker.flight.drain(0, for_good=True)
                worker = Worker(log, committed)
        assert done == set(range(len(sites)))
        await worker.flight.drain(0)

    asyncio.run(scenario())
