"""Fair shares: while one site's records fill the window, records of other sites behind them start early.

```
 position                     the log of a partition, of our lane
    │ town  town  town  town  ...  town │ museum museum │ school │ ...
    ▼                                     │               │
 fetched, in the window      scanned, noted by site: started in turn, some at a time
    ▼                                     ▼               ▼
 InFlight, its window         InFlight, a second window: early records
```
All of this ends with the process, and no guarantee depends on it. The lowest fetched offset that is not finished is
committed, as without it; the fetch skips early records. After a crash they are processed again, with the same result.
If the scan of the log fails, all sites wait their turn. The order of a page's records is not kept, as it is not by
parking: revisions decide.

This runs in the bulk lane, where an import delays other sites for hours. See docs/decisions/036-shares.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from contextlib import AsyncExitStack

import structlog

from pipelines.runtime.bus import PickingBus, PickingScan
from pipelines.runtime.errors import Retryable
from pipelines.runtime.stage import Stage
from schemas.topics import Topic
from worker.backlog import Backlog, OffsetRange
from worker.faust_app import SafeConsumer
from worker.in_flight import InFlight, Partition
from worker.parking import site_of

log = structlog.get_logger(__name__)

LOOK_EVERY = 0.2  # seconds
AFTER_FAILURE = 5.0  # seconds
IDLE_LOOKS = 150  # looks without a backlog until the connections are closed
LOOKED_AT = 10_000  # records of a partition in one look; then the other partitions follow


class Shares:
    """One per stage of the bulk lane in a process. On one event loop, no locks."""

    def __init__(
        self,
        stage: Stage,
        bus: PickingBus,
        own: Callable[[], Collection[Partition]],
        fetches: Callable[[], SafeConsumer],
    ) -> None:
        """`own`: the partitions (topic by the broker's name) that this process owns now."""
        self._stage = stage
        self._bus = bus
        self._own = own
        self._fetches = fetches
        self._backlog: Backlog[Partition] = Backlog()
        self._read: dict[Partition, int] = {}  # positions at the last look
        self._epoch = -1
        self._idle = 0  # looks
        self._stack = AsyncExitStack()
        self._scans: dict[Topic, PickingScan] = {}
        self._topics = {bus.name(topic): topic for topic in stage.routes}

    async def attend(self, in_flight: InFlight) -> None:
        """Start early records, for ever; cancel it to end it."""
        try:
            while True:
                await asyncio.sleep(LOOK_EVERY)
                try:
                    await self.look(in_flight)
                except Retryable as err:
                    log.warning("sites wait their turn: no look at the log", stage=self._stage.name, error=str(err))
                    await self._close()
                    await asyncio.sleep(AFTER_FAILURE)
        finally:
            await self._close()

    async def look(self, in_flight: InFlight) -> None:
        """Scan the log behind the fetched records, and start those of the next sites. Raises: Retryable."""
        if in_flight.epoch != self._epoch:  # a rebalance has dropped the early records
            self._epoch = in_flight.epoch
            for partition in list(self._read):
                self._forget(partition)
        behind = self._behind(in_flight)
        for name, topic in self._topics.items():
            since = {number: position for (named, number), position in behind.items() if named == name}
            if since:
                scan = await self._scan(topic)
                await self._note(name, scan, since)
                for number in since:
                    await self._give_turns((name, number), scan, in_flight)
        if behind:
            self._idle = 0
        elif self._scans:
            self._idle += 1
            if self._idle >= IDLE_LOOKS:
                await self._close()

    def _behind(self, in_flight: InFlight) -> Mapping[Partition, int]:
        """Partitions that are not fetched to their end, and the offsets to scan from."""
        own, fetches = set(self._own()), self._fetches()
        behind: dict[Partition, int] = {}
        for partition in own | self._read.keys():
            position = fetches.read_to(*partition) if partition in own else None
            waits = in_flight.full(partition) or fetches.goes_on(*partition)
            if position is None or position < self._read.get(partition, 0) or not waits:
                self._forget(partition)
            else:
                self._read[partition] = position
                behind[partition] = self._backlog.scan_from(partition, position)
        return behind

    def _forget(self, partition: Partition) -> None:
        self._read.pop(partition, None)
        self._backlog.forget(partition)

    async def _note(self, name: str, scan: PickingScan, since: Mapping[int, int]) -> None:
        if self._backlog.full:
            return
        ends = await scan.ends()
        until = {number: min(start + LOOKED_AT, ends.get(number, start)) for number, start in since.items()}
        until = {number: end for number, end in until.items() if end > since[number]}
        if not until:
            return
        async for records in scan.read(since=since, until=until):
            for record in records:
                if record.lane == self._stage.lane and (site := site_of(record)) is not None:
                    self._backlog.note((name, record.partition), record.offset, site)
        for number, end in until.items():
            self._backlog.scanned((name, number), end)

    async def _give_turns(self, partition: Partition, scan: PickingScan, in_flight: InFlight) -> None:
        while True:
            served = {site for record in in_flight.at_work(partition) if (site := site_of(record)) is not None}
            room = in_flight.room_early(partition)
            if in_flight.epoch != self._epoch:
                return
            stretch = self._backlog.turn(partition, served, room)
            if stretch is None or not await self._begin(partition, stretch, scan, in_flight):
                return

    async def _begin(self, partition: Partition, stretch: OffsetRange, scan: PickingScan, in_flight: InFlight) -> bool:
        """Start records of the stretch; returns whether the next site may follow."""
        records = [record async for some in scan.pick(partition[1], stretch.start, stretch.end) for record in some]
        # No await from here on, so that no fetch and no drain comes in between.
        position = self._fetches().read_to(*partition)
        if in_flight.epoch != self._epoch or position is None or not in_flight.room_early(partition):
            return False
        begun = []
        for record in records:
            own = record.lane == self._stage.lane and site_of(record) == stretch.site
            if own and record.offset >= position and self._fetches().early(record):
                in_flight.put(record, early=True)
                begun.append(record.offset)
        self._backlog.took(partition, stretch, begun)
        return True

    async def _scan(self, topic: Topic) -> PickingScan:
        if topic not in self._scans:
            self._scans[topic] = await self._stack.enter_async_context(self._bus.scan(topic))
        return self._scans[topic]

    async def _close(self) -> None:
        self._scans.clear()
        await self._stack.aclose()
        self._stack = AsyncExitStack()
