"""Which partitions of a topic are this process's own share, told by a consumer group that reads nothing.

    gateway a ─┐                                            ┌─ 0, 2
    gateway b ─┴─▶ group `pagewire-gateways` at the broker ─┴─ 1, 3

The broker notices who comes and who dies; we need no register of gateways. A share is thrift, never a promise: two who
go by the same partition for a while each read what is the other's, and that is all. Nothing is committed.
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

GATEWAYS = "pagewire-gateways"  # who reads answers, and shares out who reads which
ATTEND_MS = 60_000  # a member that asks for no records for five minutes counts as dead
RETRY = 30.0  # seconds until a broker that would not have us in the group is asked again


def share_group(settings: KafkaSettings) -> str:
    """The consumer group by which gateways share the answers' partitions."""
    return settings.topic_prefix + GATEWAYS


class Share:
    """`changed` is called with the partitions whenever they are others, which may be none."""

    def __init__(self, settings: KafkaSettings, topic: Topic, changed: Callable[[frozenset[int]], None]) -> None:
        self._settings = settings
        self._topic = prefixed(settings, topic)
        self._changed = changed
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Join, in the background: nobody waits for it."""
        self._task = asyncio.create_task(self._run(), name=f"share of {self._topic}")

    async def aclose(self) -> None:
        """Leave, so that others take over at once."""
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
        """Be a member until the broker will not have us. Raises: KafkaError, Retryable."""
        consumer = AIOKafkaConsumer(
            **connection(self._settings),
            group_id=share_group(self._settings),
            enable_auto_commit=False,
            auto_offset_reset="latest",
            request_timeout_ms=int(REQUEST_TIMEOUT * 1000),
            metadata_max_age_ms=int(METADATA_AGE * 1000),
        )
        consumer.subscribe([self._topic], listener=_Told(consumer, self._changed))
        try:
            await started(from_broker(consumer.start(), "join the gateways' group"), self._settings)
            while True:
                await consumer.getmany(timeout_ms=ATTEND_MS)  # all are paused: this only says that we are there
        finally:
            await close(consumer.stop())


class _Told(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka has no types
    def __init__(self, consumer: AIOKafkaConsumer, changed: Callable[[frozenset[int]], None]) -> None:
        self._consumer = consumer
        self._changed = changed

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        """They stay ours until others are told: answers under way are in them."""

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        own = list(assigned)
        self._consumer.pause(*own)  # whoever follows them reads them, not the group
        self._changed(frozenset(tp.partition for tp in own))
