"""Catch up: keeps the index of one generation up to date from a topic, and notes the offsets.

read a batch ─▶ decode ─▶ write      while a batch is written (several by workers), the next one is read and decoded
                             └─▶ note of the offsets, every few seconds: a kill costs the records after it
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from time import monotonic

from pipelines.operate.rebuild.index_builder import KEPT_FAILURES, IndexBuilder
from pipelines.runtime.bus import BrokerView, Bus, LogScan
from pipelines.runtime.stage import INGEST, StageEntry
from schemas.rebuild import Rebuild, RebuildFailure
from schemas.topics import Topic

NOTE_EVERY = 5.0  # seconds
LOOK_EVERY = 1.0  # seconds between two looks at the end of the topic
# After a round of at most this time the backlog is small: it fits into the moment in which saves are held.
NEAR = 3.0  # seconds

Report = Callable[[Rebuild], None]


@dataclass
class _Batch:
    """A batch in work; when it and all earlier ones are written, the topic is done up to `reached`."""

    reached: Mapping[int, int]
    settled: int = 0  # done messages
    writing: asyncio.Task[None] | None = field(default=None, repr=False)

    async def written(self) -> None:
        assert self.writing is not None
        await self.writing


class CatchUp:
    """For one task at a time; after a cancelled call the next one continues at the last note."""

    def __init__(
        self,
        rebuild: Rebuild,
        scan: LogScan,
        builder: IndexBuilder,
        put: Callable[[Rebuild], Awaitable[None]],
        report: Report,
    ) -> None:
        self._noted = rebuild
        self._scan = scan
        self._builder = builder
        self._put = put
        self._report = report
        self._offsets = dict(rebuild.offsets)
        self._begins: dict[int, int] = {}
        self._total = rebuild.total
        self._batches: deque[_Batch] = deque()  # behind the noted offsets, oldest first
        self._at = monotonic()

    async def near(self) -> None:
        """Follow until the end is near."""
        while True:
            began = monotonic()
            await self.to_end()
            if monotonic() - began < NEAR:
                return

    async def on_and_on(self) -> None:
        """Follow until cancelled."""
        while True:
            await self.to_end()
            await asyncio.sleep(LOOK_EVERY)

    async def to_end(self) -> None:
        """Follow to the topic's current end.

        Raises: Retryable: a service was away for too long, or the index is gone. WrongUse.
        """
        ends = await self._scan.ends()  # first: it may find new partitions
        self._begins = await self._scan.begins()
        self._total = sum(ends[p] - self._begins[p] for p in ends)
        # Beyond the end: the topic was created anew.
        since = {p: offset for p, offset in self._offsets.items() if offset <= ends.get(p, 0)}
        reached = dict(since)
        try:
            async with aclosing(self._scan.read(since=since, until=ends)) as batches:
                async for records in batches:
                    pages = await self._builder.decode(records)
                    while len(self._batches) >= self._builder.batches:
                        await self._oldest()
                    reached |= {record.partition: record.offset + 1 for record in records}
                    batch = _Batch(dict(reached))
                    writing = self._builder.write(pages, partial(self._settle, batch))
                    batch.writing = asyncio.create_task(writing, name="fill")
                    self._batches.append(batch)
            while self._batches:
                await self._oldest()
        finally:
            left = [batch.writing for batch in self._batches if batch.writing is not None]
            self._batches.clear()
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
        await self._reach(ends)

    async def note(self, **update: object) -> Rebuild:
        """Store the rebuild's offsets, with these fields changed."""
        self._noted = self._now(**update)
        self._builder.take()
        self._at = monotonic()
        await self._put(self._noted)
        return self._noted

    async def _oldest(self) -> None:
        """Wait for the batch: later ones count as done only after it."""
        await self._batches[0].written()
        await self._reach(self._batches.popleft().reached)

    async def _reach(self, offsets: Mapping[int, int]) -> None:
        self._offsets = dict(offsets)
        if monotonic() - self._at > NOTE_EVERY:
            await self.note()
        self._report(self._now())

    def _settle(self, batch: _Batch, messages: int) -> None:
        batch.settled += messages
        self._report(self._now())

    def _now(self, **update: object) -> Rebuild:
        """The last note with the progress since."""
        tally, before = self._builder.tally, self._noted
        done = sum(max(0, offset - self._begins.get(p, 0)) for p, offset in self._offsets.items())
        failed = (*before.failed, *(RebuildFailure(page_key=key, reason=reason) for key, reason in tally.failed))
        return before.model_copy(
            update={
                "offsets": dict(self._offsets),
                "done": min(done + sum(batch.settled for batch in self._batches), self._total),
                "total": self._total,
                "pages": before.pages + tally.pages,
                "chunks": before.chunks + tally.chunks,
                "embedded": before.embedded + tally.embedded,
                "remade": before.remade + tally.remade,
                "failures": before.failures + tally.failures,
                "failed": failed[:KEPT_FAILURES],
                "seconds": round(before.seconds + monotonic() - self._at, 3),
                "updated_at": datetime.now(UTC),
                **update,
            }
        )


PATIENCE = 15.0  # seconds; a save takes one or two, and workers commit often
POLL = 0.2  # seconds


async def indexed(bus: Bus) -> dict[int, int] | None:
    """Offsets of cms.changes before which all changes are indexed; None after PATIENCE.

    Raises: Retryable: the broker does not answer.
    """
    first: Mapping[int, int] | None = None
    async with bus.view() as view:
        try:
            async with asyncio.timeout(PATIENCE):
                for stage in INGEST:
                    topic = stage.reads[0]
                    spans = (await view.spans([topic])).get(topic, {})
                    ends = {partition: end for partition, (_, end) in spans.items()}
                    first = ends if first is None else first
                    await _past(view, stage, topic, ends)
        except TimeoutError:
            return None
    return dict(first or {})


async def _past(view: BrokerView, stage: StageEntry, topic: Topic, ends: Mapping[int, int]) -> None:
    """Wait until all lanes of a stage have finished everything before `ends`."""
    for group in stage.groups:
        while True:
            committed = await view.committed(group)
            if all(committed.get((topic, partition), 0) >= end for partition, end in ends.items()):
                break
            await asyncio.sleep(POLL)
