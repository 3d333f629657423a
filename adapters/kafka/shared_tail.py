"""Follows some partitions of a topic: those of our own share always, others while a reader of this process needs them.

    own share (PartitionShare)     ─┐
    a reader of another partition  ─┼─▶ followed ─▶ no reader ─▶ LINGER ─▶ paused, not read
    the topic has more partitions  ─┘

All partitions are assigned to the consumer, and those not followed are paused: a new assignment would drop the running
fetch, and delay all readers.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from uuid import uuid4

import structlog
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import KafkaError

from adapters.kafka.access import KafkaDenied, KafkaDown, forbidden, started
from adapters.kafka.client import METADATA_AGE, from_broker, new_consumer, partition_of, prefixed, stop
from adapters.kafka.log import READ_TIMEOUT, SETTLED_MS, KafkaLogTail, read_error
from adapters.kafka.settings import KafkaSettings
from pipelines.runtime.errors import Retryable
from pipelines.runtime.record import Record
from schemas.topics import Topic

log = structlog.get_logger(__name__)

LINGER = 30.0  # seconds that a partition is followed after its last reader: readers reconnect
# Seconds after the start in which all partitions are followed: producers may know other partitions than we do, and the
# share is assigned meanwhile.
SETTLING = 3 * METADATA_AGE
GROWN = 300.0  # seconds in which all are followed after partitions were added: longer than any answer takes


class KafkaSharedTail(KafkaLogTail):
    """A LogTail that follows only some partitions. `shared`: it gets a share among all gateways."""

    def __init__(
        self, settings: KafkaSettings, topic: Topic, deliver: Callable[[Record], None], *, shared: bool = False
    ) -> None:
        super().__init__(settings, topic, deliver)
        self._share = PartitionShare(settings, topic, self._adopt) if shared else None
        self._count = 0  # the topic's partitions
        self._name = uuid4().hex
        self._own: frozenset[int] = frozenset()
        self._wanted: Counter[int] = Counter()
        self._until: dict[int, float] = {}  # by partition: monotonic time until which it is followed in any case
        self._begins: dict[int, asyncio.Task[None]] = {}
        self._adopts: asyncio.Task[None] | None = None

    @property
    def own(self) -> frozenset[int]:
        """The partitions of our share, all of them followed; empty: not assigned yet, or there is none."""
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
        """Follow the partitions meanwhile, so that `position` knows them. New ones start at their end.

        Raises:
            KafkaDown: the broker does not tell their ends, or a partition is not known yet.
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

    def _adopt(self, own: frozenset[int] | None) -> None:
        """Make these our share. None: take a default share, unless one is assigned in time."""
        if self._adopts is not None:
            self._adopts.cancel()
        self._adopts = asyncio.create_task(self._take_over(own), name=f"share of {self._topic}")

    async def _take_over(self, own: frozenset[int] | None) -> None:
        if own is None:
            await asyncio.sleep(SETTLING)
        if not own:  # more gateways than partitions, or no right to the group: follow one, though others do so, too
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
        """Follow a partition from its end. Concurrent calls share one task."""
        if (task := self._begins.get(partition)) is None:
            task = asyncio.create_task(self._seek_end(partition), name=f"{self._topic}/{partition}")
            task.add_done_callback(lambda done: self._begins.pop(partition) and (done.cancelled() or done.exception()))
            self._begins[partition] = task
        await asyncio.shield(task)  # a cancelled caller must not cancel the task of the others

    async def _seek_end(self, partition: int) -> None:
        if self._consumer is None or self._asking is None or not 0 <= partition < self._count:
            raise KafkaDown(f"{self._topic}: this process does not know partition {partition} yet")
        tp = TopicPartition(self._topic, partition)
        try:
            async with asyncio.timeout(READ_TIMEOUT):
                end = (await self._asking.end_offsets([tp]))[tp]
        except (KafkaError, TimeoutError) as err:
            raise read_error(f"following {self._topic}/{partition}", err) from err
        if partition not in self._next:  # otherwise `_grow` has begun to follow it meanwhile
            self._next[partition] = end
            self._consumer.seek(tp, end)
            self._consumer.resume(tp)

    async def _follow_new(self, consumer: AIOKafkaConsumer) -> None:
        """Follow new partitions, and stop following those without a reader.

        With new partitions, keys move to other partitions, and producers learn of it earlier or later than we do. So
        all partitions are followed for a while: the new ones from their beginning, the others from a time before that.
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
        self._next = starts | self._next  # followed partitions keep their positions
        self._count = count
        self._linger(range(count), GROWN)
        consumer.assign([TopicPartition(self._topic, n) for n in range(count)])
        for number, offset in self._next.items():  # a new assignment resets positions and pauses
            consumer.seek(TopicPartition(self._topic, number), offset)


GATEWAYS = "pagewire-gateways"  # the consumer group
POLL_MS = 60_000  # a member that does not poll for five minutes counts as dead
RETRY = 30.0  # seconds until the next try to join the group


def share_group(settings: KafkaSettings) -> str:
    """The consumer group by which gateways share the answers' partitions."""
    return settings.topic_prefix + GATEWAYS


class PartitionShare:
    """Assigns each gateway a share of a topic's partitions, by a consumer group that reads nothing.

        gateway a ─┐                                            ┌─ 0, 2
        gateway b ─┴─▶ group `pagewire-gateways` at the broker ─┴─ 1, 3

    The broker notices new and dead members, so we need no register of gateways. A share only saves reading: two
    gateways may follow the same partition for a while, and both work correctly. Nothing is committed.

    Calls `changed` with the partitions whenever they change. They may be none.
    """

    def __init__(self, settings: KafkaSettings, topic: Topic, changed: Callable[[frozenset[int]], None]) -> None:
        self._settings = settings
        self._topic = prefixed(settings, topic)
        self._changed = changed
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Join in the background."""
        self._task = asyncio.create_task(self._run(), name=f"share of {self._topic}")

    async def aclose(self) -> None:
        """Leave, so that the others get this share at once."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            try:
                await self._belong()
            except (KafkaError, Retryable) as err:
                said = str(err) if isinstance(err, KafkaDenied) else forbidden(err) or repr(err)
                log.warning("no share of the answers: more of them are read than need be", error=said)
            await asyncio.sleep(RETRY)

    async def _belong(self) -> None:
        """Be a member of the group until an error. Raises: KafkaError, Retryable."""
        consumer = new_consumer(
            self._settings,
            group_id=share_group(self._settings),
            auto_offset_reset="latest",
            metadata_max_age_ms=int(METADATA_AGE * 1000),
        )
        consumer.subscribe([self._topic], listener=_AssignmentListener(consumer, self._changed))
        try:
            await started(from_broker(consumer.start(), "join the gateways' group"), self._settings)
            while True:
                await consumer.getmany(timeout_ms=POLL_MS)  # all partitions are paused; the poll keeps the membership
        finally:
            await stop(consumer)


class _AssignmentListener(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka has no types
    def __init__(self, consumer: AIOKafkaConsumer, changed: Callable[[frozenset[int]], None]) -> None:
        self._consumer = consumer
        self._changed = changed

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        """The share stays until the next assignment, since running answers are in it."""

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        own = list(assigned)
        self._consumer.pause(*own)  # SharedTail reads them with a consumer of its own
        self._changed(frozenset(tp.partition for tp in own))
