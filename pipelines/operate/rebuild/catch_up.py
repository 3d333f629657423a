"""Catch up: keep the index of one generation up to date from a topic, and note how far it got.

read a batch ─▶ decode ─▶ write      while one batch is written, the next is read and decoded
                             └─▶ note of the offsets, every few seconds: a kill costs what came after
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from time import monotonic

from pipelines.operate.rebuild.index_builder import KEPT_FAILURES, IndexBuilder
from pipelines.runtime.bus import LogScan
from schemas.rebuild import Rebuild, RebuildFailure

NOTE_EVERY = 5.0  # seconds
LOOK_EVERY = 1.0  # seconds between two looks at the end of the topic
# A round that takes no longer has left little behind it: the rest fits into the moment in which saves are held.
NEAR = 3.0  # seconds

Report = Callable[[Rebuild], None]


class CatchUp:
    """For one task at a time; after a cancelled call the next goes on where the last note was."""

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
        self._settled = 0  # messages done with beyond the offsets
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
        """Follow to where the topic ends now.

        Raises:
            Retryable: a service was away for too long, or the index is gone. WrongUse.
        """
        ends = await self._scan.ends()  # first: it may hear of more partitions
        self._begins = await self._scan.begins()
        self._total = sum(ends[p] - self._begins[p] for p in ends)
        # Beyond the end: it is another topic of the same name by now.
        since = {p: offset for p, offset in self._offsets.items() if offset <= ends.get(p, 0)}
        reached = dict(since)
        writing: asyncio.Task[None] | None = None
        try:
            async with aclosing(self._scan.read(since=since, until=ends)) as batches:
                async for records in batches:
                    pages = await self._builder.decode(records)
                    if writing is not None:
                        await writing
                        await self._reach(reached)
                    reached |= {record.partition: record.offset + 1 for record in records}
                    writing = asyncio.create_task(self._builder.write(pages, self._settle), name="fill")
            if writing is not None:
                await writing
        finally:
            if writing is not None and not writing.done():
                writing.cancel()
                await asyncio.gather(writing, return_exceptions=True)
        await self._reach(ends)

    async def note(self, **update: object) -> Rebuild:
        """Put down where the rebuild is, with these fields changed."""
        self._noted = self._now(**update)
        self._builder.take()
        self._at = monotonic()
        await self._put(self._noted)
        return self._noted

    async def _reach(self, offsets: Mapping[int, int]) -> None:
        self._offsets, self._settled = dict(offsets), 0
        if monotonic() - self._at > NOTE_EVERY:
            await self.note()
        self._report(self._now())

    def _settle(self, messages: int) -> None:
        self._settled += messages
        self._report(self._now())

    def _now(self, **update: object) -> Rebuild:
        """The note, and what was done since."""
        tally, before = self._builder.tally, self._noted
        done = sum(max(0, offset - self._begins.get(p, 0)) for p, offset in self._offsets.items())
        failed = (*before.failed, *(RebuildFailure(page_key=key, reason=reason) for key, reason in tally.failed))
        return before.model_copy(
            update={
                "offsets": dict(self._offsets),
                "done": min(done + self._settled, self._total),
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
