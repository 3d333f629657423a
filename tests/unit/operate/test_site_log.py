"""Reading for one site gives what reading everything gives, whatever happens to topic and notes meanwhile."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from adapters.elastic.client import ElasticsearchDown
from pipelines.operate import record_places, site_log
from pipelines.operate.record_places import Covered, NotedRange
from pipelines.operate.site_log import SiteLog
from pipelines.runtime.record import Record
from tests.fakes.pages import FakePlaces

SITES = ("town", "town-hall", "a", "ä", "")  # the last two are no sites: keys that somebody else has sent
BATCH = 2


@dataclass
class Topic:
    """A topic in memory, and how often each record of it was read."""

    partitions: list[list[Record]] = field(default_factory=lambda: [[], []])
    tops: list[int] = field(default_factory=lambda: [0, 0])
    begin: dict[int, int] = field(default_factory=dict)
    number: int | None = 1
    read_of: Counter[tuple[int, int]] = field(default_factory=Counter)

    def send(self, partition: int, key: bytes | None) -> None:
        partition %= len(self.partitions)
        self.partitions[partition].append(Record("t", partition, self.tops[partition], key, b"v"))
        self.tops[partition] += 1

    def grow(self) -> None:
        self.partitions.append([])
        self.tops.append(0)

    def compact(self) -> None:
        for number, records in enumerate(self.partitions):
            last = {record.key: record.offset for record in records}
            self.partitions[number] = [record for record in records if last[record.key] == record.offset]

    def cut(self, partition: int) -> None:
        """As a retention does that somebody has set."""
        partition %= len(self.partitions)
        self.begin[partition] = self.tops[partition] // 2
        self.partitions[partition] = [r for r in self.partitions[partition] if r.offset >= self.begin[partition]]

    def make_anew(self) -> None:
        self.partitions, self.tops, self.begin = [[], []], [0, 0], {}
        self.number = (self.number or 0) + 1

    def of(self, site: str, since: Mapping[int, int], until: Mapping[int, int]) -> set[tuple[int, int]]:
        return {
            (record.partition, record.offset)
            for records in self.partitions
            for record in records
            if (record.key or b"").startswith(f"{site}:".encode())
            and since.get(record.partition, 0) <= record.offset < until.get(record.partition, 0)
        }

    # A PickingScan

    async def identity(self) -> str | None:
        return None if self.number is None else str(self.number)

    async def begins(self) -> dict[int, int]:
        return {number: self.begin.get(number, 0) for number in range(len(self.partitions))}

    async def ends(self) -> dict[int, int]:
        return dict(enumerate(self.tops))

    async def read(
        self, *, since: Mapping[int, int] | None = None, until: Mapping[int, int]
    ) -> AsyncGenerator[list[Record], None]:
        for partition, end in until.items():
            async for batch in self.pick(partition, (since or {}).get(partition, 0), end):
                yield batch

    async def pick(self, partition: int, start: int, end: int) -> AsyncGenerator[list[Record], None]:
        at = start
        while batch := [r for r in self.partitions[partition] if at <= r.offset < end][:BATCH]:
            at = batch[-1].offset + 1
            self.read_of.update((record.partition, record.offset) for record in batch)
            yield batch


class MovingPlaces(FakePlaces):
    """Away, or deleted, when a test says so."""

    away = False

    async def covered(self, topic: str) -> Covered:
        await self._answer()
        return await super().covered(topic)

    async def of_site(self, topic: str, site: str, partition: int) -> AsyncGenerator[NotedRange, None]:
        async for stretch in super().of_site(topic, site, partition):
            await self._answer()
            yield stretch

    async def put(self, topic: str, stretch: NotedRange) -> None:
        await self._answer()
        await super().put(topic, stretch)

    async def _answer(self) -> None:
        if self.away:
            raise ElasticsearchDown("away")

    def delete(self) -> None:
        self.notes, self.stretches = {}, {}


@pytest.fixture(autouse=True)
def soon() -> Iterator[None]:
    """Notes are put down after few records already, and looked up for few."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(site_log, "FLUSH", 5)
        patch.setattr(site_log, "LEAST", 2)
        patch.setattr(site_log, "TOGETHER", 3)
        patch.setattr(site_log, "BATCH", 2)
        patch.setattr(record_places, "SEEK", 1)
        yield


class Reading:
    """One reader, step by step."""

    def __init__(self, topic: Topic, places: FakePlaces, site: str, since: Mapping[int, int]) -> None:
        self.topic, self.site, self.since, self.until = topic, site, since, dict(enumerate(topic.tops))
        self.there = topic.of(site, since, self.until)
        self.found: set[tuple[int, int]] = set()
        self.log = SiteLog(topic, places, site)
        self.batches = self.log.read(since=since, until=self.until)

    async def step(self) -> bool:
        """False when it has come to its end, where it has found what a reader of everything finds."""
        async for batch in self.batches:
            self.found |= {
                (r.partition, r.offset) for r in batch if (r.key or b"").startswith(f"{self.site}:".encode())
            }
            return True
        assert self.topic.of(self.site, self.since, self.until) <= self.found <= self.there
        await self.log.noted()
        return False

    async def to_end(self) -> None:
        while await self.step():
            pass


partitions = st.integers(0, 3)
actions = st.one_of(
    st.tuples(st.just("send"), partitions, st.sampled_from(SITES), st.integers(0, 2)),
    st.tuples(st.just("send"), partitions, st.sampled_from(SITES[:2]), st.integers(0, 2)),
    st.tuples(st.just("send"), partitions, st.sampled_from(SITES[:2]), st.integers(0, 2)),
    st.tuples(st.just("open"), st.sampled_from(SITES[:3]), st.integers(0, 6)),
    st.tuples(st.just("open"), st.sampled_from(SITES[:3]), st.just(0)),
    st.tuples(st.just("step"), st.integers(0, 3), st.integers(1, 30)),
    st.tuples(st.just("die"), st.integers(0, 3)),
    st.tuples(st.sampled_from(["grow", "compact", "delete", "away", "back"])),
    st.tuples(st.sampled_from(["make_anew", "compact"])),
)


async def play(history: list[tuple[str | int, ...]]) -> None:
    topic, places, readings = Topic(), MovingPlaces(), list[Reading]()
    for what, *how in history:
        match what, how:
            case "send", [int(partition), str(site), int(page)]:
                topic.send(partition, f"{site}:en:{page}".encode() if site else None)
            case "open", [str(site), int(back)]:
                readings.append(
                    Reading(topic, places, site, {p: top - back for p, top in enumerate(topic.tops) if back})
                )
            case "step", [int(which), int(steps)] if readings:
                one = readings[which % len(readings)]
                for _ in range(steps):
                    if not await one.step():
                        readings.remove(one)
                        break
            case "die", [int(which)] if readings:
                dying = readings.pop(which % len(readings))
                await dying.batches.aclose()
                await dying.log.stop()
            case "delete", _:
                places.delete()
            case "away" | "back", _:
                places.away = what == "away"
            case "make_anew", _ if not readings:
                topic.make_anew()
            case "grow" | "compact", _:
                getattr(topic, str(what))()
    for reading in readings:
        await reading.to_end()
    for site in SITES[:3]:
        await Reading(topic, places, site, {}).to_end()


@settings(max_examples=3 * settings().max_examples)
@given(st.lists(actions, max_size=60))
@example([*[("send", n % 2, SITES[n % 3], n) for n in range(20)], ("open", "town", 0), ("step", 0, 30), ("compact",)])
def test_any_history_gives_every_record_of_the_site(history: list[tuple[str | int, ...]]) -> None:
    asyncio.run(play(history))


def filled(topic: Topic, sites: int = 50, pages: int = 4) -> Topic:
    for number in range(sites * pages):
        topic.send(number // sites, f"s{number % sites}:en:{number // sites}".encode())
    return topic


async def test_one_sites_records_are_read_alone_when_anybody_has_read_all() -> None:
    topic, places = filled(Topic()), FakePlaces()
    await Reading(topic, places, "s1", {}).to_end()
    assert set(topic.read_of.values()) == {1}
    assert len(topic.read_of) == 200
    topic.read_of.clear()
    await Reading(topic, places, "s2", {}).to_end()
    assert topic.read_of.total() == 4
    topic.send(0, b"s3:en:new")
    topic.read_of.clear()
    await Reading(topic, places, "s2", {}).to_end()
    assert topic.read_of.total() == 5, "what came since is read, too"


async def test_what_compaction_took_is_looked_for_once() -> None:
    topic, places = filled(Topic()), FakePlaces()
    await Reading(topic, places, "s1", {}).to_end()
    for number in range(200):
        topic.send(number // 50, f"s{number % 50}:en:{number // 50}".encode())
    topic.compact()
    before = sum(len(stretch.runs) for stretch in places.stretches.values() if stretch.site == "s1")
    await Reading(topic, places, "s1", {}).to_end()
    after = sum(len(stretch.runs) for stretch in places.stretches.values() if stretch.site == "s1")
    assert (before, after) == (4, 4), "the four that were read are noted in place of those that are gone"
    assert not [s for s in places.stretches.values() if s.site == "s1" and s.end <= 100]


async def test_a_retention_that_somebody_has_set_costs_only_what_it_takes() -> None:
    topic, places = filled(Topic()), FakePlaces()
    await Reading(topic, places, "s1", {}).to_end()
    topic.cut(0)
    await Reading(topic, places, "s1", {}).to_end()


async def test_a_topic_that_lost_records_is_read_whole() -> None:
    topic, places = filled(Topic()), FakePlaces()
    await Reading(topic, places, "s1", {}).to_end()
    topic.partitions[0], topic.tops[0] = topic.partitions[0][:10], 10
    topic.send(0, b"s40:en:other")
    await Reading(topic, places, "s40", {}).to_end()
    assert places.notes["1"].ends == {}
    await Reading(topic, places, "s40", {}).to_end()


async def test_places_of_another_topic_are_seen_and_forgotten() -> None:
    topic, places = filled(Topic()), FakePlaces()
    await Reading(topic, places, "s1", {}).to_end()
    topic.make_anew()
    topic.number = 1  # as an old copy of a cluster has it
    for number in range(400):
        topic.send(number // 50, f"s{number % 25}:en:{number // 50}".encode())
    await Reading(topic, places, "s30", {}).to_end()
    await Reading(topic, places, "s20", {}).to_end()


async def test_notes_that_are_deleted_while_they_are_read_are_missed_by_nobody() -> None:
    class Deleted(FakePlaces):
        async def of_site(self, topic: str, site: str, partition: int) -> AsyncGenerator[NotedRange, None]:
            self.notes, self.stretches = {}, {}
            async for stretch in super().of_site(topic, site, partition):
                yield stretch

    topic, places = filled(Topic()), Deleted()
    await Reading(topic, places, "s1", {}).to_end()
    assert places.notes
    await Reading(topic, places, "s2", {}).to_end()
    assert topic.read_of.total() == 400


async def test_what_a_reader_did_not_ask_for_is_not_taken_for_gone() -> None:
    topic, places = filled(Topic()), FakePlaces()
    early = Reading(topic, places, "s2", {})
    early.until = {0: 10, 1: 10}
    early.there = topic.of("s2", {}, early.until)
    early.batches = early.log.read(until=early.until)
    await Reading(topic, places, "s1", {}).to_end()
    await early.to_end()
    await Reading(topic, places, "s2", {}).to_end()


async def test_without_an_id_of_the_topic_everything_is_read() -> None:
    topic, places = filled(Topic(number=None)), FakePlaces()
    for _ in range(2):
        topic.read_of.clear()
        await Reading(topic, places, "s1", {}).to_end()
        assert topic.read_of.total() == 200
    assert not places.notes


async def test_a_reader_that_goes_on_further_back_than_noted_notes_nothing() -> None:
    topic, places = filled(Topic()), FakePlaces()
    await Reading(topic, places, "s1", {0: 50, 1: 50}).to_end()
    assert not places.notes.get("1", Covered({})).ends
    await Reading(topic, places, "s2", {}).to_end()


async def test_a_reader_that_is_left_closes_what_it_reads() -> None:
    topic, places = filled(Topic()), FakePlaces()
    async with aclosing(SiteLog(topic, places, "s1").read(until=await topic.ends())) as batches:
        await anext(batches)
    await Reading(topic, places, "s1", {}).to_end()
