"""Reading a whole topic, batch by batch: from chosen offsets to chosen ends, memory bounded. Or stretches of it.

Unlike a stage it shares no partitions with anybody and commits nothing (who wants to go on later remembers the
offsets), and unlike `kafka_log` it takes all partitions: for rebuilds, audits and lists of dead letters.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from aiokafka import AIOKafkaConsumer, TopicPartition

from adapters.kafka.access import connection, started
from adapters.kafka.client import REQUEST_TIMEOUT, close, from_broker, prefixed
from adapters.kafka.log import record_of
from adapters.kafka.settings import KafkaSettings
from adapters.kafka.topic_id import topic_id
from pipelines.runtime.record import Record
from schemas.topics import Topic

POLL_MS = 500
BATCH = 200  # records handed over at once, at most
# Asked for at once: memory stays small. A larger message comes all the same, alone (KIP-74).
PARTITION_BYTES = 1024 * 1024
# A fetch brings one of the log's batches, whole, however little is asked for (KIP-74): so nothing comes that stands
# behind it. From so many records on a stretch is read as a whole topic is, and what is fetched beyond it is little.
ONE_BATCH = 1  # bytes
LONG = 1_000  # records

Offsets = Mapping[int, int]  # by partition


class LogScan:
    """`async with LogScan(settings, CHANGES) as scan: async for batch in scan.read(until=await scan.ends()): ...`"""

    def __init__(self, settings: KafkaSettings, topic: Topic) -> None:
        self._settings = settings
        self._topic = prefixed(settings, topic)
        self._partitions: list[TopicPartition] = []
        self._consumer = _consumer(settings, PARTITION_BYTES)
        self._picking: AIOKafkaConsumer | None = None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Raises: Retryable: no broker, or no such topic."""
        self._stack.push_async_callback(self._close, self._consumer)
        try:
            await started(from_broker(self._consumer.start(), "connect"), self._settings)
            first = TopicPartition(self._topic, 0)
            self._consumer.assign([first])  # a client knows only the topics it was made to ask about
            self._consumer.pause(first)  # nothing is wanted yet, and a fetch at the end would hold up the next one
            await from_broker(self._consumer.beginning_offsets([first]), f"describe {self._topic}")
            self._take_up()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, err: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    @staticmethod
    async def _close(consumer: AIOKafkaConsumer) -> None:
        await close(consumer.stop())

    def _take_up(self) -> None:
        """The partitions that the client knows of by now."""
        numbers = sorted(self._consumer.partitions_for_topic(self._topic) or [0])
        if len(numbers) > len(self._partitions):
            self._partitions = [TopicPartition(self._topic, number) for number in numbers]
            self._consumer.assign(self._partitions)
            self._consumer.pause(*self._partitions)

    async def begins(self) -> dict[int, int]:
        """Offsets of the oldest records kept. Raises: Retryable."""
        found = await from_broker(
            self._consumer.beginning_offsets(self._partitions), f"read the begins of {self._topic}"
        )
        return {tp.partition: offset for tp, offset in found.items()}

    async def ends(self) -> dict[int, int]:
        """Offsets the next records will get, also of partitions that the topic has got meanwhile. Raises: Retryable."""
        # Asked for now: who reads on to these ends must not pass over what came into a partition it has not heard of.
        await from_broker(self._consumer._client.force_metadata_update(), f"describe {self._topic}")
        self._take_up()
        found = await from_broker(self._consumer.end_offsets(self._partitions), f"read the ends of {self._topic}")
        return {tp.partition: offset for tp, offset in found.items()}

    async def read(
        self, *, since: Offsets | None = None, until: Offsets, batch: int = BATCH
    ) -> AsyncGenerator[list[Record], None]:
        """Records from `since` (default: the oldest kept) up to, not including, `until`, in order per partition.

        At most `batch` at once. What is compacted away is passed over. May be called again to go on from `until`.

        Raises:
            Retryable: the broker does not answer.
        """
        ends = await self.ends()  # first: it may hear of more partitions
        begins = await self.begins()
        left: dict[TopicPartition, int] = {}
        for tp in self._partitions:
            start = max((since or {}).get(tp.partition, 0), begins[tp.partition])
            end = min(until.get(tp.partition, 0), ends[tp.partition])
            self._consumer.seek(tp, start)
            if start < end:
                left[tp] = end
        self._consumer.resume(*self._consumer.paused())
        self._consumer.pause(*(tp for tp in self._partitions if tp not in left))
        while left:
            fetched = await from_broker(
                self._consumer.getmany(*left, timeout_ms=POLL_MS, max_records=batch), f"read {self._topic}"
            )
            records = [record_of(m) for tp, messages in fetched.items() for m in messages if m.offset < left[tp]]
            if records:
                yield records
            for tp in list(left):
                # The position, not the last record's offset: the last ones may be compacted away.
                if await from_broker(self._consumer.position(tp), f"read {self._topic}") >= left[tp]:
                    del left[tp]
                    self._consumer.pause(tp)

    async def identity(self) -> str | None:
        """The broker's id of the topic, another one when it is made anew; None: it gives none. Raises: Retryable."""
        return await from_broker(topic_id(self._consumer._client, self._topic), f"identify {self._topic}")

    async def pick(self, partition: int, start: int, end: int) -> AsyncGenerator[list[Record], None]:
        """Records from `start` up to, not including, `end`, in order, and little else: what shares their batches.

        What is compacted away is passed over. Not while a `read` is under way.

        Raises:
            Retryable: the broker does not answer.
        """
        if end - start >= LONG:
            async for records in self.read(since={partition: start}, until={partition: end}):
                yield records
            return
        consumer, tp = await self._picker(), TopicPartition(self._topic, partition)
        if consumer.assignment() != {tp}:
            consumer.assign([tp])
            consumer.pause(tp)
        consumer.seek(tp, start)
        at = start
        while at < end:
            consumer.resume(tp)
            fetched = await from_broker(consumer.getmany(tp, timeout_ms=POLL_MS), f"read {self._topic}")
            consumer.pause(tp)  # at once, before the client fetches what comes next
            at = await from_broker(consumer.position(tp), f"read {self._topic}")
            if records := [record_of(m) for m in fetched.get(tp, []) if m.offset < end]:
                yield records

    async def _picker(self) -> AIOKafkaConsumer:
        if self._picking is None:
            consumer = _consumer(self._settings, ONE_BATCH)
            self._stack.push_async_callback(self._close, consumer)
            await started(from_broker(consumer.start(), "connect"), self._settings)
            self._picking = consumer
        return self._picking


def _consumer(settings: KafkaSettings, partition_bytes: int) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        **connection(settings),
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        fetch_max_wait_ms=POLL_MS,
        fetch_max_bytes=4 * PARTITION_BYTES,
        max_partition_fetch_bytes=partition_bytes,
        request_timeout_ms=int(REQUEST_TIMEOUT * 1000),
    )
