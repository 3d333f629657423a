"""Queries to the broker: ends, commits, lag, members. Never from a worker's own state."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import GroupCoordinatorNotAvailableError

from adapters.kafka.access import connection, started
from adapters.kafka.client import REQUEST_TIMEOUT, close, from_broker
from adapters.kafka.settings import KafkaSettings

COORDINATOR_POLL = 0.2  # seconds


class Broker:
    """Queries through two clients, an admin client and a consumer."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        timeout_ms = int(REQUEST_TIMEOUT * 1000)
        self._admin = AIOKafkaAdminClient(**connection(settings), request_timeout_ms=timeout_ms)
        # Without a group: it only reads the ends of partitions.
        self._reader = AIOKafkaConsumer(**connection(settings), request_timeout_ms=timeout_ms)

    async def start(self) -> None:
        """Raises: Retryable."""
        await started(from_broker(self._admin.start(), "connect"), self._settings)
        await from_broker(self._reader.start(), "connect")

    async def stop(self) -> None:
        await close(self._admin.close())
        await close(self._reader.stop())

    async def topics(self) -> dict[str, set[int]]:
        """Topics and their partitions. Raises: Retryable."""
        found = await from_broker(self._admin.describe_topics(None), "list topics")
        return {topic["topic"]: {p["partition"] for p in topic["partitions"]} for topic in found}

    async def copies(self) -> dict[str, tuple[int, int]]:
        """By topic: the lowest number of replicas of a partition, and of replicas in sync. Raises: Retryable."""
        found = await from_broker(self._admin.describe_topics(None), "list topics")
        return {
            topic["topic"]: (
                min((len(p["replicas"]) for p in topic["partitions"]), default=0),
                min((len(p["isr"]) for p in topic["partitions"]), default=0),
            )
            for topic in found
        }

    async def ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Offsets the next messages will get. Raises: Retryable."""
        return await self._offsets(self._reader.end_offsets, partitions, "read end offsets")

    async def begins(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Offsets of the oldest messages kept. Raises: Retryable."""
        return await self._offsets(self._reader.beginning_offsets, partitions, "read begin offsets")

    async def _offsets(
        self,
        ask: Callable[[list[TopicPartition]], Awaitable[dict[TopicPartition, int]]],
        partitions: Iterable[TopicPartition],
        what: str,
    ) -> dict[TopicPartition, int]:
        wanted = list(partitions)
        if not wanted:
            return {}
        # For topics it does not know, the client would look up one leader after the other, with a pause of 0.1 s each.
        added = [self._reader._client.add_topic(topic) for topic in {tp.topic for tp in wanted}]
        await from_broker(asyncio.gather(*added), what)
        return await from_broker(ask(wanted), what)

    async def committed(self, group: str) -> dict[TopicPartition, int]:
        """The group's committed offsets; partitions without a commit are absent. Raises: Retryable."""
        coordinator = await self._coordinator(group)
        found = await from_broker(
            self._admin.list_consumer_group_offsets(group, coordinator), f"read offsets of {group}"
        )
        return {tp: at.offset for tp, at in found.items() if at.offset >= 0}

    async def members(self, group: str) -> int:
        """Raises: Retryable."""
        coordinator = await self._coordinator(group)
        (groups,) = await from_broker(self._admin.describe_consumer_groups([group], coordinator), f"describe {group}")
        return sum(len(described["members"]) for described in groups.to_object()["groups"])

    async def _coordinator(self, group: str) -> int:
        async def ask() -> int:
            while True:
                try:
                    return int(await self._admin.find_coordinator(group))
                except GroupCoordinatorNotAvailableError:  # a new broker creates its offsets topic at the first request
                    await asyncio.sleep(COORDINATOR_POLL)

        return await from_broker(ask(), f"find the coordinator of {group}")

    async def behind(self, group: str, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The group's lag in messages, per partition (compacted ones count). Raises: Retryable."""
        wanted = list(partitions)
        # Committed first: in the other order, progress in between would give a negative lag.
        committed = await self.committed(group)
        begins, ends = await self.begins(wanted), await self.ends(wanted)
        return {tp: max(0, ends[tp] - max(committed.get(tp, 0), begins[tp])) for tp in wanted}

    async def spans(self, names: Iterable[str]) -> dict[str, dict[int, tuple[int, int]]]:
        """Begin and end offset per partition, by topic; missing topics are left out. Raises: Retryable."""
        topics = await self.topics()
        found = {name: topics[name] for name in names if name in topics}
        wanted = [TopicPartition(name, partition) for name, numbers in found.items() for partition in numbers]
        begins, ends = await self.begins(wanted), await self.ends(wanted)
        spans: dict[str, dict[int, tuple[int, int]]] = {name: {} for name in found}
        for tp in wanted:
            spans[tp.topic][tp.partition] = begins[tp], ends[tp]
        return spans


@asynccontextmanager
async def broker(settings: KafkaSettings) -> AsyncIterator[Broker]:
    """A connected Broker. Raises: Retryable."""
    client = Broker(settings)
    try:
        await client.start()
        yield client
    finally:
        await client.stop()
