"""Site log: reads one site's records from a topic of all sites.

    offsets  0 ................................ covered ............. end
             └ the site's own places, a stretch each ┘└ all records ───────┘
                                                        └─▶ the places of all sites in it, for the next reader

A reader that has to read a part of the topic completely notes the places of each site's records in it, so that each
part is read once, and not once per site. The notes are an optimisation: without them, or if they do not fit the topic,
all records are read. They are complete, because the places are stored before the covered range, and a record never
moves: compaction removes records and adds none. Newer records are behind the covered range.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import TypeVar

import structlog

from pipelines.operate.record_places import (
    Covered,
    NotedRange,
    Places,
    Run,
    count,
    holds,
    runs_of,
    spans_for,
    union,
    within,
)
from pipelines.runtime.bus import LogScan, PickingBus, PickingScan
from pipelines.runtime.errors import PagewireError, Retryable
from pipelines.runtime.record import Record
from schemas.base import is_site_id
from schemas.topics import Topic

log = structlog.get_logger(__name__)

T = TypeVar("T")

TOGETHER = 50_000  # places that are planned at once
BATCH = 200  # records at most; callers process the pages of a batch concurrently
BATCH_BYTES = 1024 * 1024
FLUSH = 100_000  # records read after which their places are noted
LEAST = 16  # records; fewer are not worth a note: the next reader reads some 50 kB again
PATIENCE = 60.0  # seconds for a note, which may concern a thousand sites


class PlacesWrong(Retryable):
    """The notes do not fit the topic; all records are read instead."""

    code = "places-wrong"


class SiteLog:
    """One topic, for one site. A LogScan: `read` yields all records of the site, and maybe others."""

    def __init__(self, scan: PickingScan, places: Places, site: str) -> None:
        self._scan = scan
        self._places = places
        self._site = site
        self._prefix = f"{site}:".encode()
        self._noting: asyncio.Task[None] | None = None
        self.begins, self.ends = scan.begins, scan.ends

    async def read(
        self, *, since: Mapping[int, int] | None = None, until: Mapping[int, int]
    ) -> AsyncGenerator[list[Record], None]:
        """All records of the site from `since` (default: the oldest kept) up to, not including, `until`, in order per
        partition; other sites' records may be among them.

        Raises: Retryable: the broker does not answer.
        """
        since = since or {}
        topic, covered = await self._known()
        known: Mapping[int, int] = {}
        if topic is not None and covered is not None:
            try:
                async with aclosing(self._noted_ones(topic, covered, since, until)) as own:
                    async for batch in own:
                        yield batch
                known = covered.ends
            except PagewireError as err:
                log.warning("reading all sites' records", site=self._site, why=str(err))
                covered = None  # read all records from the beginning; repeated ones are harmless
        rest = {partition: max(since.get(partition, 0), known.get(partition, 0)) for partition in until}
        async with aclosing(self._whole(topic, covered, since, rest, until)) as whole:
            async for batch in whole:
                yield batch

    async def _known(self) -> tuple[str | None, Covered | None]:
        """The topic's id, and how far its places are known."""
        topic = await self._scan.identity()
        if topic is None:  # an old broker gives no ids, so a topic that was created anew would go unnoticed
            return None, None
        try:
            return topic, await self._places.covered(topic)
        except PagewireError as err:
            log.warning("reading all sites' records", site=self._site, why=str(err))
            return topic, None

    async def _noted_ones(
        self, topic: str, covered: Covered, since: Mapping[int, int], until: Mapping[int, int]
    ) -> AsyncGenerator[list[Record], None]:
        """The noted records of the site, partition by partition."""
        ends, begins = await self._scan.ends(), await self._scan.begins()
        if any(ends.get(partition, 0) < end for partition, end in covered.ends.items()):
            await self._places.forget(topic)
            raise PlacesWrong("the topic has lost records: what was noted is of others")
        for partition, end in sorted(until.items()):
            start = max(since.get(partition, 0), begins.get(partition, 0))
            stop = min(end, covered.ends.get(partition, 0))
            async with aclosing(self._own(topic, partition, start, stop)) as own:
                async for batch in own:
                    yield batch
        now = await self._places.covered(topic)
        if any(now.ends.get(partition, 0) < end for partition, end in covered.ends.items()):
            raise PlacesWrong("what was noted was deleted while it was read, so some of it may have been missing")

    async def _own(self, topic: str, partition: int, start: int, stop: int) -> AsyncGenerator[list[Record], None]:
        """The site's noted places from `start` up to `stop`."""
        if start >= stop:
            return
        at = start
        gathered: list[Record] = []
        async for stretches in self._together(topic, partition):
            began = at  # stretches overlap if two readers have noted the same part
            runs = within(union(run for stretch in stretches for run in stretch.runs), at, stop)
            found: list[int] = []
            for first, end in spans_for(runs):
                async with aclosing(self._scan.pick(partition, first, end)) as batches:
                    async for batch in batches:
                        found += await self._checked(topic, batch, runs)
                        gathered += batch
                        if len(gathered) >= BATCH or sum(map(_weight, gathered)) >= BATCH_BYTES:
                            yield gathered
                            gathered = []
                at = end
            await self._forget_compacted(topic, [s for s in stretches if began <= s.start and s.end <= stop], found)
        if gathered:
            yield gathered

    async def _together(self, topic: str, partition: int) -> AsyncIterator[list[NotedRange]]:
        """Read in groups, so that memory stays flat."""
        some: list[NotedRange] = []
        async with aclosing(self._places.of_site(topic, self._site, partition)) as stretches:
            async for stretch in stretches:
                some.append(stretch)
                if sum(count(one.runs) for one in some) >= TOGETHER:
                    yield some
                    some = []
        if some:
            yield some

    async def _checked(self, topic: str, batch: Iterable[Record], runs: Sequence[Run]) -> list[int]:
        """Offsets of the site's records among these. Raises: PlacesWrong."""
        found = []
        for record in batch:
            if (record.key or b"").startswith(self._prefix):
                found.append(record.offset)
            elif holds(runs, record.offset):
                await self._places.forget(topic)
                raise PlacesWrong(f"{record} is not of site {self._site}, as was noted")
        return found

    async def _forget_compacted(self, topic: str, stretches: Sequence[NotedRange], found: Sequence[int]) -> None:
        """Replace a stretch by its remaining records if compaction has removed most of it."""
        for stretch in stretches:
            there = found[bisect_left(found, stretch.start) : bisect_left(found, stretch.end)]
            if 2 * len(there) <= count(stretch.runs):
                left = NotedRange(stretch.site, stretch.partition, stretch.start, stretch.end, runs_of(there))
                await self._helped(self._places.put(topic, left))

    async def _whole(
        self,
        topic: str | None,
        covered: Covered | None,
        since: Mapping[int, int],
        rest: Mapping[int, int],
        until: Mapping[int, int],
    ) -> AsyncGenerator[list[Record], None]:
        """All records; their places are noted if they continue the covered range."""
        if topic is None or covered is None:
            async for batch in self._scan.read(since=rest, until=until):
                yield batch
            return
        ends = await self._scan.ends()
        goal = {p: min(end, ends.get(p, 0)) for p, end in until.items()}
        note = _Note(covered, {p for p in until if since.get(p, 0) <= covered.ends.get(p, 0)})
        async with aclosing(self._scan.read(since=rest, until=goal)) as batches:
            async for batch in batches:
                note.add(batch)
                yield batch
                if note.records >= FLUSH:
                    note = await self._noted(topic, note, note.reached)
        if note.records >= LEAST and self._noting is None:
            # In the background, because a promotion may hold saves back meanwhile. A reader before its end reads the
            # same part again.
            self._noting = asyncio.create_task(self._put_down(topic, note, note.reached | goal), name="note-places")

    async def noted(self) -> None:
        """Return when the places of the read records are noted, if that is possible."""
        if self._noting is not None:
            await asyncio.shield(self._noting)

    async def stop(self) -> None:
        """Stop noting."""
        if self._noting is not None:
            self._noting.cancel()
            await asyncio.gather(self._noting, return_exceptions=True)

    async def _put_down(self, topic: str, note: _Note, ends: Mapping[int, int]) -> None:
        try:
            await self._noted(topic, note, ends)
        finally:
            self._noting = None

    async def _noted(self, topic: str, note: _Note, ends: Mapping[int, int]) -> _Note:
        """Note the places up to these offsets; returns the new covered range."""
        ends = {p: end for p, end in ends.items() if p in note.partitions and end > note.covered.ends.get(p, 0)}
        covered = await self._helped(self._places.add(topic, note.stretches(ends), note.covered, ends))
        return _Note(covered, note.partitions) if covered else _Note(note.covered, set())

    async def _helped(self, work: Awaitable[T]) -> T | None:
        """Write notes; an error is only logged, because notes are optional."""
        try:
            async with asyncio.timeout(PATIENCE):
                return await work
        except (PagewireError, TimeoutError) as err:
            log.warning("places of records were not noted", site=self._site, why=str(err) or "no answer in time")
            return None


def _weight(record: Record) -> int:
    return len(record.value or b"")


class _Note:
    """The sites of the read records."""

    def __init__(self, covered: Covered, partitions: set[int]) -> None:
        self.covered = covered
        self.partitions = partitions
        self.records = 0
        self.reached: dict[int, int] = {}
        self._offsets: dict[tuple[str, int], list[int]] = defaultdict(list)

    def add(self, batch: Iterable[Record]) -> None:
        for record in batch:
            if record.partition not in self.partitions:
                continue
            self.records += 1
            self.reached[record.partition] = record.offset + 1
            site = (record.key or b"").partition(b":")[0].decode(errors="replace")
            if is_site_id(site):  # else it is no record of a site
                self._offsets[site, record.partition].append(record.offset)

    def stretches(self, ends: Mapping[int, int]) -> list[NotedRange]:
        return [
            NotedRange(site, p, self.covered.ends.get(p, 0), ends[p], runs_of(offsets))
            for (site, p), offsets in self._offsets.items()
        ]


@asynccontextmanager
async def site_log(scan: AbstractAsyncContextManager[PickingScan], places: Places, site: str) -> AsyncIterator[SiteLog]:
    """The topic of a scan, for one site. Raises, when entered: Retryable: no broker, or no such topic."""
    async with scan as opened:
        log = SiteLog(opened, places, site)
        try:
            yield log
            await log.noted()
        finally:
            await log.stop()


class SiteBus:
    """A Bus whose logs are read for one site."""

    def __init__(self, bus: PickingBus, places: Places, site: str) -> None:
        self._bus = bus
        self._places = places
        self._site = site
        self.name, self.reader, self.view = bus.name, bus.reader, bus.view

    def scan(self, topic: Topic) -> AbstractAsyncContextManager[LogScan]:
        return site_log(self._bus.scan(topic), self._places, self._site)
