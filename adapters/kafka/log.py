"""Reads a topic as a log: without a consumer group and commits, so every reader gets all records.

`KafkaLogTail` follows a topic from now on and delivers each record to a callback; `KafkaLogReader` reads a range of
the past. Gateways use both: the tail for running answers, the reader for a visitor who reconnects.

A broker answers the requests of a connection in order, and a fetch at the end of a log blocks there until new records
come. So other requests must not share a consumer with such a fetch: partitions are paused while their offsets are
requested, and a tail, which always has a blocking fetch, requests offsets through a second consumer.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, NamedTuple, Self

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from adapters.kafka import partition_of, prefixed
from adapters.kafka.access import KafkaDenied, KafkaDown, forbidden, started
from adapters.kafka.client import METADATA_AGE, new_consumer, stop
from adapters.kafka.lookups import Lookup, Lookups
from adapters.kafka.settings import KafkaSettings
from pipelines.runtime.errors import Retryable
from pipelines.runtime.record import Record
from schemas.topics import MAX_MESSAGE_BYTES, RECORD_OVERHEAD_BYTES, Topic

log = logging.getLogger(__name__)

POLL_MS = 500
READ_MS = 10  # wait of a reader's fetch at the end of a log; a reader needs no newer records
CATCH_UP_POLL = 0.005  # seconds
# A tail pauses after a batch of records, so that many parallel answers do not need a fetch for each event.
GATHER = 0.01  # seconds
READ_TIMEOUT = 15.0  # seconds; longer than a request's own limit, see adapters.kafka.client
# A key is searched in its own partition only where the topic's newest partition was in use so long before. Otherwise
# producers may not have known it yet (METADATA_AGE, and clocks differ), so all partitions are searched.
SETTLED_MS = 60_000
FETCH_BYTES = MAX_MESSAGE_BYTES + RECORD_OVERHEAD_BYTES


def read_error(doing: str, err: Exception) -> Retryable:
    """The client's error as one of ours."""
    if isinstance(err, KafkaDenied | KafkaDown):
        return type(err)(f"{doing}: {err}")
    if (said := forbidden(err)) is not None:
        return KafkaDenied(f"{doing}: {said}")
    return KafkaDown(f"{doing}: {err!r}")


def _log_consumer(settings: KafkaSettings, wait_ms: int) -> AIOKafkaConsumer:
    return new_consumer(
        settings,
        fetch_max_wait_ms=wait_ms,
        max_partition_fetch_bytes=FETCH_BYTES,
        metadata_max_age_ms=int(METADATA_AGE * 1000),
    )


def _assign_paused(consumer: AIOKafkaConsumer, *partitions: TopicPartition) -> None:
    """Assign the partitions paused, so that nothing is fetched yet."""
    consumer.assign(partitions)
    consumer.pause(*partitions)


async def _partitions(consumer: AIOKafkaConsumer, topic: str) -> list[int]:
    """The topic's partitions, from the client's metadata. The first call asks the broker, and assigns partition 0."""
    if not (known := consumer.partitions_for_topic(topic)):
        first = TopicPartition(topic, 0)
        _assign_paused(consumer, first)
        await consumer.beginning_offsets([first])  # makes the client request the topic's metadata
        known = consumer.partitions_for_topic(topic)
    return sorted(known or [0])


def record_of(m: Any) -> Record:
    return Record(m.topic, m.partition, m.offset, m.key, m.value, tuple(m.headers), m.timestamp)


class KafkaLogTail:
    """Follows a topic from its end at `start`, and later partitions from their beginning.

    `deliver` must not block; it is called in offset order.
    """

    def __init__(self, settings: KafkaSettings, topic: Topic, deliver: Callable[[Record], None]) -> None:
        self._settings = settings
        self._topic = prefixed(settings, topic)
        self._deliver = deliver
        self._next: dict[int, int] = {}
        self._consumer: AIOKafkaConsumer | None = None
        self._asking: AIOKafkaConsumer | None = None
        self._task: asyncio.Task[None] | None = None

    def partition_of(self, key: str) -> int:
        return partition_of(key.encode(), len(self._next))

    def position(self, partition: int) -> int:
        """The offset of the next record to be delivered. Raises: KafkaDown: the partition is not known yet."""
        try:
            return self._next[partition]
        except KeyError:
            raise KafkaDown(f"{self._topic}: this process does not know partition {partition} yet") from None

    async def catch_up(self, key: str, seconds: float) -> None:
        """Wait until all records that the key's partition has now are delivered.

        Returns at once if not started or if the broker does not tell the end, and after so many seconds in any case.
        """
        if self._asking is None:
            return
        tp = TopicPartition(self._topic, self.partition_of(key))
        with suppress(KafkaError, TimeoutError):
            async with asyncio.timeout(seconds):
                end = (await self._asking.end_offsets([tp]))[tp]
                while self._next[tp.partition] < end:  # noqa: ASYNC110  # there is no event to wait for
                    await asyncio.sleep(CATCH_UP_POLL)

    async def start(self) -> None:
        """Raises: KafkaDown."""
        consumer, asking = _log_consumer(self._settings, POLL_MS), _log_consumer(self._settings, POLL_MS)
        try:
            async with asyncio.timeout(READ_TIMEOUT):
                await started(asking.start(), self._settings)
                await consumer.start()
                await _partitions(asking, self._topic)
                assigned = [TopicPartition(self._topic, p) for p in await _partitions(consumer, self._topic)]
                _assign_paused(consumer, *assigned)
                ends = await consumer.end_offsets(assigned)
        except (KafkaError, KafkaDenied, KafkaDown, TimeoutError) as err:
            await stop(asking)
            await stop(consumer)
            raise read_error(f"following {self._topic}", err) from err
        for tp, end in ends.items():
            consumer.seek(tp, end)
            self._next[tp.partition] = end
        consumer.resume(*assigned)
        self._consumer, self._asking = consumer, asking
        self._task = asyncio.create_task(self._run(consumer), name=f"tail-{self._topic}")
        self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """A tail never ends by itself. If it does, this process gets no more answers, so the process ends as well."""
        if not task.cancelled() and (err := task.exception()):
            log.critical("following %s ended", self._topic, exc_info=err)
            os.kill(os.getpid(), signal.SIGTERM)  # a supervisor starts the process again

    async def _run(self, consumer: AIOKafkaConsumer) -> None:
        while True:
            try:
                await self._follow_new(consumer)
                batches = await consumer.getmany(timeout_ms=POLL_MS)
            except KafkaError as err:
                log.warning("following %s: %r", self._topic, err)
                await asyncio.sleep(1.0)
                continue
            for tp, messages in batches.items():
                for message in messages:
                    if tp.partition not in self._next:  # SharedTail has stopped following it
                        break
                    self._next[tp.partition] = message.offset + 1
                    self._deliver(record_of(message))
            if sum(map(len, batches.values())) > 1:
                await asyncio.sleep(GATHER)

    async def _follow_new(self, consumer: AIOKafkaConsumer) -> None:
        """Follow partitions that were added to the topic since the last call."""
        new = (consumer.partitions_for_topic(self._topic) or set()) - self._next.keys()
        if not new:
            return
        log.info("following %s: %d partitions more", self._topic, len(new))
        self._next |= dict.fromkeys(sorted(new), 0)
        consumer.assign([TopicPartition(self._topic, number) for number in self._next])
        for number, offset in self._next.items():  # a new assignment resets positions
            consumer.seek(TopicPartition(self._topic, number), offset)

    async def aclose(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for consumer in (self._consumer, self._asking):
            if consumer is not None:
                await stop(consumer)


class _Stretch(NamedTuple):
    """A range of offsets to read, and the wanted keys. Without an end: to the end of the log."""

    start: int
    end: int | None
    keys: set[bytes]


class KafkaLogReader:
    """Reads ranges of a topic, one at a time. Connects at the first read."""

    def __init__(self, settings: KafkaSettings, topic: Topic) -> None:
        self._settings = settings
        self._topic = prefixed(settings, topic)
        self._consumer: AIOKafkaConsumer | None = None
        self._lock = asyncio.Lock()
        self._lookups = Lookups(self._look_up)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def read(self, partition: int, start: int, end: int | None = None) -> list[Record]:
        """Records from `start` up to, not including, `end` (default: the end of the log now).

        Raises:
            KafkaDown.
        """
        async with self._reading(f"reading {self._topic}/{partition} from {start}"):
            return await self._read(partition, start, end)

    async def of_key(
        self, key: str, since_ms: int, until_ms: int | None = None, begins: tuple[int, int] | None = None
    ) -> list[Record]:
        """Records of one key written at `since_ms` (since 1970) or later, in order within a partition.

        Those of `until_ms` and later may be left out. Concurrent calls share one reading, and may get earlier records
        as well. Where the topic may have got more partitions since then, all partitions are searched.

        Args:
            begins: a partition, and an offset in it before which the key has no records. Reading starts there.

        Raises:
            KafkaDown.
        """
        return await self._lookups.of(Lookup(key.encode(), since_ms, until_ms, begins))

    async def _look_up(self, lookups: Sequence[Lookup]) -> list[list[Record]]:
        found: dict[bytes, list[Record]] = {lookup.key: [] for lookup in lookups}
        keys = ", ".join(lookup.key.decode(errors="replace") for lookup in lookups[:3])
        async with self._reading(f"reading {self._topic} for {keys}") as limit:
            for partition, stretch in sorted((await self._stretches(lookups)).items()):
                await self._pick(partition, stretch, found, limit)
        return [found[lookup.key] for lookup in lookups]

    async def _stretches(self, lookups: Sequence[Lookup]) -> dict[int, _Stretch]:
        """The range of each partition that covers all lookups."""
        numbers = await _partitions(await self._connected(), self._topic)
        since = min(lookup.since_ms for lookup in lookups)
        untils = [lookup.until_ms for lookup in lookups]
        until = None if None in untils else max(filter(None, untils), default=0)
        settled = await self._in_use_before(numbers[-1], since - SETTLED_MS)
        starts: dict[int, int] = {}
        by_time: set[int] = set()
        wanted: dict[int, set[bytes]] = {}
        for lookup in lookups:
            own = {partition_of(lookup.key, len(numbers))} if settled else set(numbers)
            begun, offset = lookup.begins or (-1, 0)
            if begun in numbers:
                own |= {begun}
                starts[begun] = min(offset, starts.get(begun, offset))
            by_time |= own - {begun}
            for number in own:
                wanted.setdefault(number, set()).add(lookup.key)
        for number, offset in (await self._starts(by_time, since)).items():
            starts[number] = min(offset, starts.get(number, offset))
        ends = {} if until is None else await self._starts(starts, until)
        return {number: _Stretch(start, ends.get(number), wanted[number]) for number, start in starts.items()}

    async def _pick(
        self, partition: int, stretch: _Stretch, found: dict[bytes, list[Record]], limit: asyncio.Timeout
    ) -> None:
        """Add the stretch's records of the wanted keys. Others are dropped at once, since the stretch may be long."""
        loop = asyncio.get_running_loop()
        limit.reschedule(loop.time() + READ_TIMEOUT)
        async with aclosing(self._messages(partition, stretch.start, stretch.end)) as batches:
            async for messages in batches:
                limit.reschedule(loop.time() + READ_TIMEOUT)
                for message in messages:
                    if message.key in stretch.keys:
                        found[message.key].append(record_of(message))

    async def since(self, since_ms: int) -> list[Record]:
        """Records of all partitions written at `since_ms` (since 1970) or later; in order within a partition.

        Raises:
            KafkaDown.
        """
        async with self._reading(f"reading {self._topic} since {since_ms}"):
            numbers = await _partitions(await self._connected(), self._topic)
            starts = await self._starts(numbers, since_ms)
            return [record for n, start in sorted(starts.items()) for record in await self._read(n, start, None)]

    @asynccontextmanager
    async def _reading(self, doing: str) -> AsyncIterator[asyncio.Timeout]:
        """One reading at a time, within READ_TIMEOUT. After an error the next one connects anew. Raises: KafkaDown."""
        async with self._lock:
            try:
                async with asyncio.timeout(READ_TIMEOUT) as limit:
                    yield limit
            except (KafkaError, KafkaDenied, KafkaDown, TimeoutError) as err:
                await self._disconnect()
                raise read_error(doing, err) from err

    async def _in_use_before(self, partition: int, ms: int) -> bool:
        """Whether the partition has a record older than `ms`.

        Called for the newest partition, which stands for all. A partition without traffic only costs a wider search.
        """
        if partition == 0:
            return True
        consumer = await self._connected()
        tp = TopicPartition(self._topic, partition)
        first, last, found = await asyncio.gather(
            consumer.beginning_offsets([tp]), consumer.end_offsets([tp]), consumer.offsets_for_times({tp: max(0, ms)})
        )
        return bool(first[tp] < (last[tp] if found[tp] is None else found[tp].offset))

    async def _starts(self, partitions: Iterable[int], since_ms: int) -> dict[int, int]:
        """Partition -> offset of its first record at `since_ms` or later; partitions without one are absent."""
        consumer = await self._connected()
        found = await consumer.offsets_for_times({TopicPartition(self._topic, n): since_ms for n in partitions})
        return {tp.partition: at.offset for tp, at in found.items() if at is not None}

    async def _connected(self) -> AIOKafkaConsumer:
        if self._consumer is None:
            consumer = _log_consumer(self._settings, READ_MS)
            try:
                await started(consumer.start(), self._settings)
            except BaseException:
                await stop(consumer)
                raise
            self._consumer = consumer
        return self._consumer

    async def _read(self, partition: int, start: int, end: int | None) -> list[Record]:
        async with aclosing(self._messages(partition, start, end)) as batches:
            return [record_of(message) async for messages in batches for message in messages]

    async def _messages(self, partition: int, start: int, end: int | None) -> AsyncGenerator[list[Any], None]:
        """Batches of messages from `start` up to, not including, `end`."""
        consumer = await self._connected()
        tp = TopicPartition(self._topic, partition)
        _assign_paused(consumer, tp)
        first = (await consumer.beginning_offsets([tp]))[tp]
        last = (await consumer.end_offsets([tp]))[tp]
        end = last if end is None else min(end, last)
        start = max(start, first)
        if start >= end:
            return
        consumer.seek(tp, start)
        consumer.resume(tp)
        # The consumer's position, not the last record's offset: compaction may have removed the last records.
        while await consumer.position(tp) < end:
            messages = (await consumer.getmany(tp, timeout_ms=POLL_MS)).get(tp, [])
            yield [message for message in messages if message.offset < end]
        consumer.pause(tp)

    async def aclose(self) -> None:
        await self._lookups.aclose()
        await self._disconnect()

    async def _disconnect(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            await stop(consumer)
