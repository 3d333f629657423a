"""Assigns each gateway a share of a topic's partitions, by a consumer group that reads nothing.

    gateway a ─┐                                            ┌─ 0, 2
    gateway b ─┴─▶ group `pagewire-gateways` at the broker ─┴─ 1, 3

The broker notices new and dead members, so we need no register of gateways. A share only saves reading: two gateways
may follow the same partition for a while, and both work correctly. Nothing is committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

import structlog
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import KafkaError

from adapters.kafka.access import KafkaDenied, connection, forbidden, started
from adapters.kafka.client import METADATA_AGE, REQUEST_TIMEOUT, close, from_broker, prefixed
from adapters.kafka.settings import KafkaSettings
from pipelines.runtime.errors import Retryable
from schemas.topics import Topic

log = structlog.get_logger(__name__)

GATEWAYS = "pagewire-gateways"  # the consumer group
POLL_MS = 60_000  # a member that does not poll for five minutes counts as dead
RETRY = 30.0  # seconds until the next try to join the group


def share_group(settings: KafkaSettings) -> str:
    """The consumer group by which gateways share the answers' partitions."""
    return settings.topic_prefix + GATEWAYS


class PartitionShare:
    """Calls `changed` with the partitions whenever they change. They may be none."""

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
        consumer = AIOKafkaConsumer(
            **connection(self._settings),
            group_id=share_group(self._settings),
            enable_auto_commit=False,
            auto_offset_reset="latest",
            request_timeout_ms=int(REQUEST_TIMEOUT * 1000),
            metadata_max_age_ms=int(METADATA_AGE * 1000),
        )
        consumer.subscribe([self._topic], listener=_AssignmentListener(consumer, self._changed))
        try:
            await started(from_broker(consumer.start(), "join the gateways' group"), self._settings)
            while True:
                await consumer.getmany(timeout_ms=POLL_MS)  # all partitions are paused; the poll keeps the membership
        finally:
            await close(consumer.stop())


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
