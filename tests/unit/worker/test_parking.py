"""A site in trouble: its records wait durably, everybody else goes on, and they come back by themselves."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import cast

import pytest

from pipelines.operate.dead_letters.open_letters import OpenLetters
from pipelines.runtime.bus import Bus
from pipelines.runtime.dead_letters import Mark, entry, from_headers, mark_headers
from pipelines.runtime.errors import Permanent, Retryable
from pipelines.runtime.indexes import IndexGone
from pipelines.runtime.record import Headers, Record
from pipelines.runtime.retry import RetryPolicy
from pipelines.runtime.stage import Sender, Stage
from schemas.keys import page_key
from schemas.topics import EMBEDDINGS, Topic, dead_letter_topic
from tests import skipping_time
from worker import parking as module
from worker.guard import Guard
from worker.in_flight import InFlight
from worker.parking import Parking
from worker.pause import Pause

POLICY = RetryPolicy(tries=6, retry_for=900)
GONE = IndexGone("the index of site broken is gone")
PARTITIONS = 2


class MemoryBus:
    """Dead letters in memory, as Kafka keeps them."""

    def __init__(self) -> None:
        self.logs: dict[tuple[str, int], list[Record]] = defaultdict(list)
        self.reads = 0

    def name(self, topic: Topic) -> str:
        return topic.name

    async def send(self, *args: object, **options: object) -> None:
        """Nothing is sent on."""

    async def send_bytes(
        self, topic: Topic, key: bytes | None, value: bytes | None, headers: Headers, *, partition: int | None = None
    ) -> None:
        number = 0 if partition is None else partition
        records = self.logs[topic.name, number]
        records.append(Record(topic.name, number, len(records), key, value, headers))

    @asynccontextmanager
    async def view(self) -> AsyncIterator[MemoryBus]:
        yield self

    async def spans(self, topics: Iterable[Topic]) -> dict[Topic, dict[int, tuple[int, int]]]:
        return {t: {n: (0, len(self.logs[t.name, n])) for n in range(PARTITIONS)} for t in topics}

    @asynccontextmanager
    async def scan(self, topic: Topic) -> AsyncIterator[_Scan]:
        yield _Scan(self, topic)

    def marks(self, topic: Topic) -> Counter[str]:
        found = (entry(record) for n in range(PARTITIONS) for record in self.logs[dead_letter_topic(topic).name, n])
        return Counter(mark.action for mark in found if isinstance(mark, Mark))


class _Scan:
    def __init__(self, bus: MemoryBus, topic: Topic) -> None:
        self._bus, self._topic = bus, topic

    async def read(
        self, *, since: Mapping[int, int] | None = None, until: Mapping[int, int]
    ) -> AsyncGenerator[list[Record], None]:
        for number, end in until.items():
            for record in self._bus.logs[self._topic.name, number][(since or {}).get(number, 0) : end]:
                self._bus.reads += 1
                yield [record]


class Works:
    """One process with one stage; several share a bus."""

    def __init__(self, bus: MemoryBus, fails: Callable[[str, float], Exception | None], stage: str = "index") -> None:
        self.bus = bus
        self.fails = fails
        self.tries: list[tuple[str, float]] = []
        self.done: dict[str, float] = {}
        self.broken: list[BaseException] = []
        self.letters = OpenLetters(cast(Bus, bus))
        self.stage = Stage(stage, {EMBEDDINGS: self.handle})
        self.begun = asyncio.get_running_loop().time()
        own = {(EMBEDDINGS.name, n) for n in range(PARTITIONS)}
        self.parking = Parking(self.stage, self.letters, cast(Bus, bus), POLICY.wait, lambda: own)
        self.pause = Pause(stage, "", POLICY.wait)
        self.guard = Guard(
            self.stage, EMBEDDINGS, self.handle, bus, POLICY, 60.0, pause=self.pause, parking=self.parking
        )
        self.ended: list[str] = []
        self.flight = InFlight(
            window=16,
            order_key=lambda record: record.key or b"",
            work=self.guard,
            finished=lambda record: self.ended.append((record.key or b"").decode()),
            failed=self.broken.append,
        )
        self.attending = asyncio.create_task(self.parking.attend(self.flight))

    @property
    def now(self) -> float:
        return asyncio.get_running_loop().time() - self.begun

    async def handle(self, record: Record, sender: Sender) -> None:
        key = (record.key or b"").decode()
        self.tries.append((key, self.now))
        await asyncio.sleep(0.5)
        if (error := self.fails(key, self.now)) is not None:
            raise error
        self.done[key] = self.now

    async def until(self, what: Callable[[], bool], limit: float = 100_000.0) -> None:
        while not what():
            assert not self.broken
            assert self.now < limit
            await asyncio.sleep(0.1)

    async def end(self) -> None:
        self.attending.cancel()
        await asyncio.gather(self.attending, return_exceptions=True)
        await self.flight.drain(0.0)
        await self.pause.aclose()
        await self.letters.aclose()


@pytest.fixture(autouse=True)
def _loop_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "monotonic", lambda: asyncio.get_running_loop().time())


def page(site: str, number: int) -> str:
    return page_key(site, "en", f"p{number}")


def records(*keys: str) -> list[Record]:
    return [
        Record(EMBEDDINGS.name, n % PARTITIONS, n, key.encode(), b"v", (("own", b"1"),)) for n, key in enumerate(keys)
    ]


def broken_for(seconds: float) -> Callable[[str, float], Exception | None]:
    return lambda key, now: GONE if key.startswith("broken") and now < seconds else None


BOTH = [page(site, n) for n in range(160) for site in ("broken", "healthy")]


def test_a_broken_site_costs_its_neighbour_nothing_and_comes_back() -> None:
    async def scenario(broken: bool) -> tuple[Works, list[float]]:
        works = Works(MemoryBus(), broken_for(2_000.0 if broken else 0.0))
        for record in records(*BOTH):
            works.flight.put(record)
        await works.until(lambda: sum(key.startswith("healthy") for key in works.done) == 160)
        waits = sorted(at for key, at in works.done.items() if key.startswith("healthy"))
        await works.until(lambda: len(works.done) == len(BOTH), limit=2_060.0)
        await works.until(lambda: not works.letters.counts() or not broken, limit=2_100.0)
        await works.end()
        return works, waits

    idle = skipping_time.run(scenario(False))[1]
    works, waits = skipping_time.run(scenario(True))
    assert waits[152] <= 1.5 * idle[152]
    while_broken = [key for key, at in works.tries if key.startswith("broken") and at < 2_000]
    assert len(while_broken) < 16 + 2_000 / 7  # those that were at work, then one look at a time
    assert set(works.ended) == set(BOTH)
    # What comes back comes back in order, and once.
    marks = works.bus.marks(EMBEDDINGS)
    assert set(marks) == {"returned"}


def test_what_is_parked_says_why_and_is_no_dead_letter() -> None:
    async def scenario() -> Works:
        works = Works(MemoryBus(), broken_for(10_000.0))
        for record in records(page("broken", 0), page("broken", 1), page("broken", 2)):
            works.flight.put(record)
        await works.until(lambda: len(works.ended) == 3)
        await works.letters.look()
        await works.end()
        return works

    works = skipping_time.run(scenario())
    (count,) = works.letters.counts()
    assert (count.count, count.parked, count.site, count.code) == (3, True, "broken", "index-gone")
    for records_of in works.bus.logs.values():
        for record in records_of:
            letter = from_headers(record.headers)
            assert (letter.parked, letter.message, record.value) == (True, str(GONE), b"v")


def test_parked_records_survive_the_process() -> None:
    async def scenario() -> dict[str, float]:
        bus = MemoryBus()
        first = Works(bus, broken_for(10_000.0))
        for record in records(*(page("broken", n) for n in range(40))):
            first.flight.put(record)
        await first.until(lambda: len(first.ended) >= 40)
        await first.end()
        second = Works(bus, broken_for(0.0))
        await second.until(lambda: len(second.done) == 40, limit=30.0)
        await second.letters.look()
        await second.until(lambda: not second.letters.counts(), limit=60.0)
        await second.end()
        return second.done

    done = skipping_time.run(scenario())
    assert len(done) == 40


def test_what_an_operator_drops_does_not_come_back() -> None:
    async def scenario() -> Works:
        bus = MemoryBus()
        works = Works(bus, broken_for(300.0))
        for record in records(page("broken", 0), page("healthy", 0), page("broken", 1)):
            works.flight.put(record)
        await works.until(lambda: len(works.ended) >= 3)
        buried = dead_letter_topic(EMBEDDINGS)
        dropped = bus.logs[buried.name, 0][0]
        await bus.send_bytes(buried, dropped.key, b"", mark_headers(Mark(0, "dropped", datetime.now(UTC))), partition=0)
        await works.until(lambda: page("broken", 1) in works.done or page("broken", 0) in works.done, limit=400)
        await asyncio.sleep(60)
        await works.end()
        return works

    works = skipping_time.run(scenario())
    assert len(works.done) == 2


def test_a_parked_record_that_turns_out_to_be_bad_is_buried() -> None:
    async def scenario() -> Works:
        def fails(key: str, now: float) -> Exception | None:
            return GONE if now < 60 else Permanent("never")

        works = Works(MemoryBus(), fails)
        works.flight.put(records(page("broken", 0))[0])
        await works.until(lambda: works.now > 120)
        await works.letters.look()
        await works.end()
        return works

    works = skipping_time.run(scenario())
    (count,) = works.letters.counts()
    assert (count.parked, count.code) == (False, "refused")


def test_a_service_that_fails_one_record_alone_parks_it_without_its_site() -> None:
    async def scenario() -> Works:
        def fails(key: str, now: float) -> Exception | None:
            return Retryable("the endpoint answers 500 to this text") if key == page("town", 7) and now < 500 else None

        works = Works(MemoryBus(), fails)
        keys = [page("town", n) for n in range(400)]
        for record in records(*keys):
            works.flight.put(record)
        await works.until(lambda: len(works.done) == 400, limit=560)
        await works.end()
        return works

    works = skipping_time.run(scenario())
    others = sorted(at for key, at in works.done.items() if key != page("town", 7))
    assert others[-1] < 60
    assert works.bus.marks(EMBEDDINGS) == {"returned": 1}


def test_a_stage_takes_up_its_own_alone() -> None:
    async def scenario() -> tuple[int, int]:
        bus = MemoryBus()
        first = Works(bus, broken_for(10_000.0))
        for record in records(page("broken", 0), page("broken", 1)):
            first.flight.put(record)
        await first.until(lambda: len(first.ended) >= 2)
        await first.end()
        other = Works(bus, broken_for(0.0), stage="embed")
        await asyncio.sleep(60)
        await other.end()
        return len(first.done), len(other.done)

    assert skipping_time.run(scenario()) == (0, 0)


def test_only_pages_have_a_site() -> None:
    assert module.site_of(Record("t", 0, 0, page("town", 1).encode() + b"#3", b"")) == "town"
    odd: Sequence[bytes | None] = (None, b"", b"conversation", b"\xff:en:1")
    assert [module.site_of(Record("t", 0, 0, key, b"")) for key in odd] == [None] * 4
