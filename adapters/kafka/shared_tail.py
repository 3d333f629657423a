"""Following some partitions of a topic: those of our own share always, others as long as somebody here wants them.

    own share (adapters.kafka.share) ─┐
    a reader who came from elsewhere ─┼─▶ followed ─▶ nobody wants it ─▶ LINGER ─▶ paused, not read
    the topic has got partitions     ─┘

All partitions are assigned to the consumer, and those that nobody wants are paused: an assignment of others would drop
the fetch under way, and everybody would wait for the next.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from uuid import uuid4

import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from adapters.kafka.access import KafkaDown
from adapters.kafka.client import METADATA_AGE, partition_of
from adapters.kafka.log import READ_TIMEOUT, SETTLED_MS, LogTail, down
from adapters.kafka.settings import KafkaSettings
from adapters.kafka.share import Share
from pipelines.runtime.errors import Retryable
from pipelines.runtime.record import Record
from schemas.topics import Topic

log = structlog.get_logger(__name__)

LINGER = 30.0  # seconds that a partition is followed when nobody wants it any more: readers come back
# Seconds from the start in which all partitions are followed: those who write may know more or fewer of them than we,
# and the share is told meanwhile.
SETTLING = 3 * METADATA_AGE
GROWN = 300.0  # seconds in which all are followed when the topic has got more: longer than any answer takes


class SharedTail(LogTail):
    """A LogTail that need not read everything. `shared`: has a share of its own among all who are shared (gateways)."""

    def __init__(
        self, settings: KafkaSettings, topic: Topic, deliver: Callable[[Record], None], *, shared: bool = False
    ) -> None:
        super().__init__(settings, topic, deliver)
        self._share = Share(settings, topic, self._told) if shared else None
        self._count = 0  # partitions that the topic has
        self._name = uuid4().hex
        self._own: frozenset[int] = frozenset()
        self._wanted: Counter[int] = Counter()
        self._until: dict[int, float] = {}  # so long, by the monotonic clock, a partition is followed in any case
        self._begins: dict[int, asyncio.Task[None]] = {}
        self._adopts: asyncio.Task[None] | None = None

    @property
    def own(self) -> frozenset[int]:
        """The partitions of our share, all of them followed; none: not told yet, or there is none."""
        return self._own

    def partition_of(self, key: str) -> int:
        return partition_of(key.encode(), self._count)

    async def start(self) -> None:
        """Raises: KafkaDown."""
        await super().start()
        self._count = len(self._next)
        self._linger(self._next, SETTLING)
        if self._share is not None:
            self._share.start()
            self._adopt(None)

    async def aclose(self) -> None:
        if self._share is not None:
            await self._share.aclose()
        tasks = [*self._begins.values(), *([self._adopts] if self._adopts else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await super().aclose()

    @asynccontextmanager
    async def following(self, partitions: Iterable[int]) -> AsyncIterator[None]:
        """Meanwhile they are followed, so `position` knows them; from their end, where they were not before.

        Raises:
            KafkaDown: the broker does not say where they end; one of them is not known yet.
        """
        wanted = set(partitions)
        self._wanted.update(wanted)
        try:
            for partition in wanted - self._next.keys():
                await self._begin(partition)
            yield
        finally:
            self._wanted.subtract(wanted)
            self._linger(wanted, LINGER)

    def _told(self, own: frozenset[int]) -> None:
        self._adopt(own)

    def _adopt(self, own: frozenset[int] | None) -> None:
        """Make these our share; None: the one that we take where nobody tells us."""
        if self._adopts is not None:
            self._adopts.cancel()
        self._adopts = asyncio.create_task(self._take_over(own), name=f"share of {self._topic}")

    async def _take_over(self, own: frozenset[int] | None) -> None:
        if own is None:
            await asyncio.sleep(SETTLING)
        if not own:  # more of us than partitions, or no right to the group: one is enough, whoever else has it
            own = frozenset({self.partition_of(self._name)})
        while True:
            try:
                async with self.following(own):
                    self._linger(self._own, LINGER)
                    self._own = own
                    return
            except Retryable as err:
                log.warning("taking over a share", error=str(err))
                await asyncio.sleep(1.0)

    def _linger(self, partitions: Iterable[int], seconds: float) -> None:
        until = time.monotonic() + seconds
        for partition in partitions:
            self._until[partition] = max(until, self._until.get(partition, 0.0))

    async def _begin(self, partition: int) -> None:
        """Follow a partition from its end. Once for all who want it at the same time."""
        if (task := self._begins.get(partition)) is None:
            task = asyncio.create_task(self._seek_end(partition), name=f"{self._topic}/{partition}")
            task.add_done_callback(lambda done: self._begins.pop(partition) and (done.cancelled() or done.exception()))
            self._begins[partition] = task
        await asyncio.shield(task)  # one who leaves must not end what others wait for

    async def _seek_end(self, partition: int) -> None:
        if self._consumer is None or self._asking is None or not 0 <= partition < self._count:
            raise KafkaDown(f"{self._topic}: this process has not heard of partition {partition} yet")
        tp = TopicPartition(self._topic, partition)
        try:
            async with asyncio.timeout(READ_TIMEOUT):
                end = (await self._asking.end_offsets([tp]))[tp]
        except (KafkaError, TimeoutError) as err:
            raise down(f"following {self._topic}/{partition}", err) from err
        if partition not in self._next:  # the topic has grown meanwhile, and everything is followed
            self._next[partition] = end
            self._consumer.seek(tp, end)
            self._consumer.resume(tp)

    async def _follow_new(self, consumer: AIOKafkaConsumer) -> None:
        """Take up partitions that the topic has got, and let go of those that nobody wants.

        A key may belong into another partition from then on, and who writes may have heard of it before us, or may hear
        of it later: for a while everything is followed, the new ones from their beginning, the others from a time
        before that.
        """
        known = consumer.partitions_for_topic(self._topic) or set()
        if len(known) > self._count:
            await self._grow(consumer, len(known))
        now = time.monotonic()
        for partition in list(self._next):
            if partition in self._own or self._wanted[partition] > 0 or self._until.get(partition, 0.0) > now:
                continue
            consumer.pause(TopicPartition(self._topic, partition))
            del self._next[partition]

    async def _grow(self, consumer: AIOKafkaConsumer, count: int) -> None:
        assert self._asking is not None
        log.info("the topic has more partitions", topic=self._topic, partitions=count)
        since = round(time.time() * 1000) - SETTLED_MS
        idle = [TopicPartition(self._topic, n) for n in range(self._count) if n not in self._next]
        found = await self._asking.offsets_for_times(dict.fromkeys(idle, since)) if idle else {}
        ends = await self._asking.end_offsets(idle) if idle else {}
        starts = {tp.partition: ends[tp] if found[tp] is None else found[tp].offset for tp in idle}
        starts |= dict.fromkeys(range(self._count, count), 0)
        self._next = starts | self._next  # what was begun meanwhile stays where it is
        self._count = count
        self._linger(range(count), GROWN)
        consumer.assign([TopicPartition(self._topic, n) for n in range(count)])
        for number, offset in self._next.items():  # an assignment forgets where it stood, and what was paused
            consumer.seek(TopicPartition(self._topic, number), offset)
