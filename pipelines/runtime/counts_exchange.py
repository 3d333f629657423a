"""Says this process's counts to the others, and hears theirs.

```
 SharedCounts.news() ─ every `every` seconds ─▶ topic ─▶ tail of every process ─▶ SharedCounts.take()
                                                  └─ read back at the start: what was counted before it
```
Nobody waits for it. Without a broker each process counts for itself, and goes on telling when there is one again.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Protocol

import structlog

from pipelines.runtime.bus import MakeTail, Producer, RecentLog
from pipelines.runtime.counts import SharedCounts
from pipelines.runtime.errors import PagewireError
from pipelines.runtime.record import Record
from schemas.base import WireError
from schemas.counts import Counts
from schemas.topics import Topic

log = structlog.get_logger(__name__)

EVERY = 0.5  # seconds between two looks at what there is to say
AGAIN = 2.0  # seconds after which a broker that was away is asked again
LAST_WORD = 2.0  # seconds for what is unsaid when the process ends
SKEW = 60.0  # seconds by which a broker's clock may be behind ours


class LateProducer(Producer, Protocol):
    """A producer that may not have been started yet (adapters.kafka.KafkaSender)."""

    async def start(self) -> None:
        """Nothing where it runs. Raises: Retryable: no broker."""
        ...


class CountsExchange:
    """One per topic and process. Close it when the process ends, so that its last counts are not lost.

    Args:
        bus: started when there is a broker.
        before: reads the topic; None: what was counted before the start does not matter.
    """

    def __init__(
        self,
        counts: SharedCounts,
        topic: Topic,
        bus: LateProducer,
        make_tail: MakeTail,
        before: RecentLog | None = None,
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
            async with asyncio.timeout(LAST_WORD):
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
        await self._tail.start()  # before the look back: nothing falls between the two
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
        """Raises: Retryable, Permanent; it is said at the next try then."""
        news = self._counts.news()
        for n, counts in enumerate(news):
            try:
                await self._bus.send(self._topic, counts.process, counts)
            except BaseException:
                for each in news[n:]:
                    self._counts.unsaid(each)
                raise

    def _deliver(self, record: Record) -> None:
        try:
            self._counts.take(Counts.decode(record.value))
        except WireError as err:
            log.warning("not counts", partition=record.partition, offset=record.offset, error=str(err))
