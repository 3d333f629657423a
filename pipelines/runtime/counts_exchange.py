"""Exchanges this process's counts with the others over a topic.

```
 SharedCounts.changes() ─ every `every` seconds ─▶ topic ─▶ tail of every process ─▶ SharedCounts.merge()
                                                     └─ read back at the start: earlier counts
```
It runs in the background. Without a broker each process uses its own counts, and sends them when the broker is back.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

import structlog

from pipelines.runtime.bus import LogReader, MakeTail, Producer
from pipelines.runtime.counts import SharedCounts
from pipelines.runtime.errors import PagewireError
from pipelines.runtime.record import Record
from schemas.base import WireError
from schemas.topics import Topic
from schemas.worker import Counts

log = structlog.get_logger(__name__)

EVERY = 0.5  # seconds between two sends
AGAIN = 2.0  # seconds until the next try without a broker
LAST_SEND = 2.0  # seconds for the last counts when the process ends
SKEW = 60.0  # seconds by which a broker's clock may be behind ours


class CountsExchange:
    """One per topic and process. Close it when the process ends, so that its last counts are not lost.

    Args:
        bus: started when there is a broker.
        before: reads the topic; None: counts before the start are not needed.
    """

    def __init__(
        self,
        counts: SharedCounts,
        topic: Topic,
        bus: Producer,
        make_tail: MakeTail,
        before: LogReader | None = None,
    ) -> None:
        self._counts = counts
        self._topic = topic
        self._bus = bus
        self._tail = make_tail(self._deliver)
        self._before = before
        self._task: asyncio.Task[None] | None = None
        self._listening = False

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=f"counts-{self._topic.name}")

    async def aclose(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        with suppress(TimeoutError, PagewireError):
            async with asyncio.timeout(LAST_SEND):
                await self._bus.start()
                await self._say()
        if self._listening:
            await self._tail.aclose()

    async def _run(self) -> None:
        quiet = False
        while True:
            try:
                if not self._listening:
                    await self._listen()
                await self._say()
                quiet = False
            except PagewireError as err:
                (log.debug if quiet else log.warning)(
                    "limits are this process's own for now", topic=self._topic.name, error=str(err)
                )
                quiet = True
                await asyncio.sleep(AGAIN)
            await asyncio.sleep(EVERY)

    async def _listen(self) -> None:
        """Raises: Retryable: no broker."""
        await self._bus.start()
        await self._tail.start()  # before the look back, so that no record is missed in between
        try:
            if self._before is not None:
                since = round((self._counts.began() - SKEW) * 1000)
                for record in await self._before.since(since):
                    self._deliver(record)
        except BaseException:
            await self._tail.aclose()
            raise
        self._listening = True

    async def _say(self) -> None:
        """Send the changes; after an error they go with the next call. Raises: Retryable, Permanent."""
        changes = self._counts.changes()
        for n, counts in enumerate(changes):
            try:
                await self._bus.send(self._topic, counts.process, counts)
            except BaseException:
                for each in changes[n:]:
                    self._counts.unsent(each)
                raise

    def _deliver(self, record: Record) -> None:
        try:
            self._counts.merge(Counts.decode(record.value))
        except WireError as err:
            log.warning("not counts", partition=record.partition, offset=record.offset, error=str(err))
