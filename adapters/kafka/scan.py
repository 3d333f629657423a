"""Reading a whole topic, batch by batch: from chosen offsets to chosen ends, memory bounded.

Unlike a stage it shares no partitions with anybody and commits nothing (who wants to go on later remembers the
offsets), and unlike `kafka_log` it takes all partitions: for rebuilds, audits and lists of dead letters.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from types import TracebackType
from typing import Self

from aiokafka import AIOKafkaConsumer, TopicPartition

from adapters.kafka.access import connection, started
from adapters.kafka.client import REQUEST_TIMEOUT, close, from_broker, prefixed
from adapters.kafka.log import record_of
from adapters.kafka.settings import KafkaSettings
from pipelines.runtime.record import Record
from schemas.topics import Topic

POLL_MS = 500
BATCH = 200  # records handed over at once, at most
# Asked for at once: memory stays small. A larger message comes all the same, alone (KIP-74).
PARTITION_BYTES = 1024 * 1024

Offsets = Mapping[int, int]  # by partition


class LogScan:
    """`async with LogScan(settings, CHANGES) as scan: async for batch in scan.read(until=await scan.ends()): ...`"""

    def __init__(self, settings: KafkaSettings, topic: Topic) -> None:
        self._settings = settings
        self._topic = prefixed(settings, topic)
        self._partitions: list[TopicPartition] = []
        self._consumer = AIOKafkaConsumer(
            **connection(settings),
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=POLL_MS,
            fetch_max_bytes=4 * PARTITION_BYTES,
            max_partition_fetch_bytes=PARTITION_BYTES,
            request_timeout_ms=int(REQUEST_TIMEOUT * 1000),
        )

    async def __aenter__(self) -> Self:
        """Raises: Retryable: no broker, or no such topic."""
        try:
            await started(from_broker(self._consumer.start(), "connect"), self._settings)
            first = TopicPartition(self._topic, 0)
            self._consumer.assign([first])  # a client knows only the topics it was made to ask about
            self._consumer.pause(first)  # nothing is wanted yet, and a fetch at the end would hold up the next one
            await from_broker(self._consumer.beginning_offsets([first]), f"describe {self._topic}")
            self._take_up()
        except BaseException:
            await close(self._consumer.stop())
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, err: BaseException | None, trace: TracebackType | None
    ) -> None:
        await close(self._consumer.stop())

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
