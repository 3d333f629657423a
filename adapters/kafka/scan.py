"""Reads a whole topic or ranges of it in batches, with bounded memory.

Unlike a stage, a scan has no consumer group and commits nothing: callers that resume keep the offsets. Unlike
`LogReader`, it reads all partitions: for rebuilds, audits and lists of dead letters.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack
from typing import Self

from aiokafka import AIOKafkaConsumer, TopicPartition

from adapters.kafka.access import started
from adapters.kafka.client import from_broker, new_consumer, prefixed, stop
from adapters.kafka.log import record_of
from adapters.kafka.settings import KafkaSettings
from adapters.kafka.topic_id import topic_id
from pipelines.runtime.record import Record
from schemas.topics import Topic

POLL_MS = 500
BATCH = 200  # records, at most
# Per fetch, to bound memory. A larger message is still delivered, alone (KIP-74).
PARTITION_BYTES = 1024 * 1024
# A fetch returns at least one whole batch of the log (KIP-74); with this limit, it returns nothing behind it. Longer
# ranges are read with larger fetches, since the records fetched beyond their end weigh little then.
ONE_BATCH = 1  # bytes
LONG = 1_000  # records

Offsets = Mapping[int, int]  # by partition


class KafkaLogScan:
    """`async with LogScan(settings, CHANGES) as scan: async for batch in scan.read(until=await scan.ends()): ...`"""

    def __init__(self, settings: KafkaSettings, topic: Topic) -> None:
        self._settings = settings
        self._topic = prefixed(settings, topic)
        self._partitions: list[TopicPartition] = []
        self._consumer = _scan_consumer(settings, PARTITION_BYTES)
        self._picking: AIOKafkaConsumer | None = None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Raises: Retryable: no broker, or no such topic."""
        self._stack.push_async_callback(stop, self._consumer)
        try:
            await started(from_broker(self._consumer.start(), "connect"), self._settings)
            first = TopicPartition(self._topic, 0)
            self._consumer.assign([first])  # makes the client request the topic's metadata
            self._consumer.pause(first)  # a fetch at the end of the log would block the next request
            await from_broker(self._consumer.beginning_offsets([first]), f"describe {self._topic}")
            self._update_partitions()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def _update_partitions(self) -> None:
        """Take the partitions from the client's metadata."""
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
        """Offsets the next records will get, also in partitions added meanwhile. Raises: Retryable."""
        # Fresh metadata: a caller that reads up to these ends must not miss records of a new partition.
        await from_broker(self._consumer._client.force_metadata_update(), f"describe {self._topic}")
        self._update_partitions()
        found = await from_broker(self._consumer.end_offsets(self._partitions), f"read the ends of {self._topic}")
        return {tp.partition: offset for tp, offset in found.items()}

    async def read(
        self, *, since: Offsets | None = None, until: Offsets, batch: int = BATCH
    ) -> AsyncGenerator[list[Record], None]:
        """Records from `since` (default: the oldest kept) up to, not including, `until`, in order per partition.

        At most `batch` at once. Compacted records are skipped. May be called again to go on from `until`.

        Raises:
            Retryable: the broker does not answer.
        """
        ends = await self.ends()  # first, since it may find new partitions
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
                # The consumer's position, not the last record's offset: compaction may have removed the last records.
                if await from_broker(self._consumer.position(tp), f"read {self._topic}") >= left[tp]:
                    del left[tp]
                    self._consumer.pause(tp)

    async def identity(self) -> str | None:
        """The broker's id of the topic, which changes when it is recreated; None: it has none. Raises: Retryable."""
        return await from_broker(topic_id(self._consumer._client, self._topic), f"identify {self._topic}")

    async def pick(self, partition: int, start: int, end: int) -> AsyncGenerator[list[Record], None]:
        """Records from `start` up to, not including, `end`, in order, and few others from the same batches.

        Compacted records are skipped. Must not run during a `read`.

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
            consumer.pause(tp)  # before the client prefetches the next batch
            at = await from_broker(consumer.position(tp), f"read {self._topic}")
            if records := [record_of(m) for m in fetched.get(tp, []) if m.offset < end]:
                yield records

    async def _picker(self) -> AIOKafkaConsumer:
        if self._picking is None:
            consumer = _scan_consumer(self._settings, ONE_BATCH)
            self._stack.push_async_callback(stop, consumer)
            await started(from_broker(consumer.start(), "connect"), self._settings)
            self._picking = consumer
        return self._picking


def _scan_consumer(settings: KafkaSettings, partition_bytes: int) -> AIOKafkaConsumer:
    return new_consumer(
        settings,
        fetch_max_wait_ms=POLL_MS,
        fetch_max_bytes=4 * PARTITION_BYTES,
        max_partition_fetch_bytes=partition_bytes,
    )
