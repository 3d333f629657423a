"""Kafka, seen by everything but the stream worker: topics, sending, and what the broker says of lag.

Together with pipelines/runtime/faust_app.py the only code that talks to Kafka.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeVar

import structlog
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import (
    GroupCoordinatorNotAvailableError,
    KafkaError,
    MessageSizeTooLargeError,
    RecordTooLargeError,
    TopicAlreadyExistsError,
    for_code,
)
from aiokafka.partitioner import murmur2

from pipelines.runtime.errors import Retryable, TooLarge, TopicMismatch
from pipelines.runtime.record import TRACE_HEADER, Headers
from pipelines.runtime.settings import Settings
from schemas.base import Message
from schemas.topics import MAX_MESSAGE_BYTES, RECORD_OVERHEAD_BYTES, Topic, all_topics, dead_letter_topic

log = structlog.get_logger(__name__)

REQUEST_TIMEOUT = 15.0  # seconds for one answer of the broker
SEND_TIMEOUT = 30.0  # seconds until a message counts as not confirmed; the idempotent producer itself never gives up
COORDINATOR_POLL = 0.2  # seconds
BATCH_BYTES = 256 * 1024  # small messages of one partition travel together up to this size
MAX_RECORD_BYTES = MAX_MESSAGE_BYTES + RECORD_OVERHEAD_BYTES
TOPIC_CONFIG_SOURCE = 1  # DescribeConfigs: set on the topic itself, not a broker default

Value = TypeVar("Value")


def bootstrap_servers(settings: Settings) -> str:
    """The configured broker, else the local engine's preferred port."""
    return settings.kafka or f"127.0.0.1:{settings.engine_kafka_port}"


def prefixed(settings: Settings, topic: Topic) -> str:
    """The broker's name of a topic."""
    return settings.topic_prefix + topic.name


def group_id(settings: Settings, stage: str) -> str:
    """The consumer group of a stage."""
    return f"{settings.topic_prefix}pagewire-{stage}"


def partition_of(key: bytes, partitions: int) -> int:
    """Kafka's default: murmur2 of the key, the same in the Java client."""
    return int((murmur2(key) & 0x7FFFFFFF) % partitions)


@dataclass(frozen=True)
class Outgoing:
    """A message to send."""

    topic: Topic
    key: str
    message: Message
    partition_key: str | None = None
    trace_id: str | None = None


@dataclass(frozen=True)
class Sent:
    """Where the broker put a message."""

    partition: int
    offset: int


class KafkaSender:
    """An idempotent producer that waits for the broker's confirmation by all replicas.

    After one refused batch aiokafka's idempotent producer gets OutOfOrderSequenceNumber on that partition
    for ever; so after an error that aiokafka does not retry itself, a new producer takes its place.
    """

    def __init__(self, settings: Settings, *, linger_ms: int = 0) -> None:
        """`linger_ms`: wait this long for more messages to share a request (imports), 0 for single ones."""
        self._settings = settings
        self._linger_ms = linger_ms
        self._producer: Any = None
        self._replacing = asyncio.Lock()
        self._retired: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Raises: Retryable: no broker."""
        self._producer = await self._new_producer()

    async def stop(self) -> None:
        """Send what is under way, bounded, and close."""
        producer, self._producer = self._producer, None
        if producer is not None:
            await _close(producer.stop())
        await asyncio.gather(*self._retired)

    async def _new_producer(self) -> Any:
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap_servers(self._settings),
            client_id="pagewire",
            acks="all",
            enable_idempotence=True,
            compression_type="lz4",
            linger_ms=self._linger_ms,
            max_batch_size=BATCH_BYTES,
            # The client checks sizes before compression, as the contract counts them.
            max_request_size=MAX_RECORD_BYTES,
            request_timeout_ms=int(REQUEST_TIMEOUT * 1000),
        )
        try:
            await _answer(producer.start(), "start a producer")
        except BaseException:
            await _close(producer.stop())
            raise
        return producer

    async def _replace(self, broken: Any) -> None:
        async with self._replacing:
            if self._producer is not broken:  # another send was quicker, or we are stopped
                return
            log.warning("Kafka producer replaced")
            self._producer = await self._new_producer()
        retired = asyncio.create_task(_close(broken.stop()), name="retired Kafka producer")
        self._retired.add(retired)
        retired.add_done_callback(self._retired.discard)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, err: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def send(
        self,
        topic: Topic,
        key: str,
        message: Message,
        *,
        partition_key: str | None = None,
        trace_id: str | None = None,
    ) -> None:
        """Raises: Retryable: not confirmed. TooLarge."""
        await self._send(Outgoing(topic, key, message, partition_key, trace_id))

    async def send_many(self, messages: Iterable[Outgoing]) -> list[Sent]:
        """All at once, in order per key; returns when all are confirmed.

        Raises:
            Retryable, TooLarge: of the first that failed; others may have been sent.
        """
        pending = [asyncio.ensure_future(self._send(message)) for message in messages]
        try:
            return list(await asyncio.gather(*pending))
        finally:
            for task in pending:
                task.cancel()

    async def send_bytes(self, topic: Topic, key: bytes | None, value: bytes | None, headers: Headers) -> None:
        """As they are. Raises as `send`."""
        await self._put(topic, key, value, headers, partition=None)

    async def _send(self, outgoing: Outgoing) -> Sent:
        topic = outgoing.topic
        partition = None
        if outgoing.partition_key is not None:
            known = await _answer(
                self._running().partitions_for(prefixed(self._settings, topic)), f"describe {topic.name}"
            )
            partition = partition_of(outgoing.partition_key.encode(), len(known))
        headers: Headers = ()
        if outgoing.trace_id is not None:
            headers = ((TRACE_HEADER, outgoing.trace_id.encode("ascii", "replace")),)
        return await self._put(topic, outgoing.key.encode(), outgoing.message.encode(), headers, partition)

    async def _put(
        self, topic: Topic, key: bytes | None, value: bytes | None, headers: Headers, partition: int | None
    ) -> Sent:
        name = prefixed(self._settings, topic)
        producer = self._running()
        try:
            async with asyncio.timeout(SEND_TIMEOUT):
                confirmed = await producer.send_and_wait(
                    name, value, key=key, partition=partition, headers=list(headers)
                )
        except (MessageSizeTooLargeError, RecordTooLargeError) as err:
            raise TooLarge(
                f"message for {name} has {len(value or b'')} bytes; the bus takes {MAX_MESSAGE_BYTES}"
            ) from err
        except (KafkaError, TimeoutError) as err:
            if isinstance(err, KafkaError) and not err.retriable:
                await self._replace(producer)
            raise Retryable(f"Kafka did not confirm a message for {name}: {err!r}") from err
        return Sent(confirmed.partition, confirmed.offset)

    def _running(self) -> Any:
        if self._producer is None:
            raise Retryable("the Kafka producer is not running")
        return self._producer


@dataclass(frozen=True)
class GroupLag:
    """How far a consumer group is behind. `dead_letters` counts those of its topics, of the last 14 days."""

    lag: int
    members: int
    dead_letters: int


class Broker:
    """Questions to the broker itself, never answered from a worker's own books."""

    def __init__(self, bootstrap: str) -> None:
        timeout_ms = int(REQUEST_TIMEOUT * 1000)
        self._admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap, request_timeout_ms=timeout_ms)
        # Without a group: only to ask for the ends of partitions.
        self._reader = AIOKafkaConsumer(bootstrap_servers=bootstrap, request_timeout_ms=timeout_ms)

    async def start(self) -> None:
        """Raises: Retryable."""
        await _answer(self._admin.start(), "connect")
        await _answer(self._reader.start(), "connect")

    async def stop(self) -> None:
        await _close(self._admin.close())
        await _close(self._reader.stop())

    async def topics(self) -> dict[str, set[int]]:
        """Topics and their partitions. Raises: Retryable."""
        found = await _answer(self._admin.describe_topics(None), "list topics")
        return {topic["topic"]: {p["partition"] for p in topic["partitions"]} for topic in found}

    async def ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Offsets the next messages will get. Raises: Retryable."""
        wanted = list(partitions)
        return await _answer(self._reader.end_offsets(wanted), "read end offsets") if wanted else {}

    async def begins(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Offsets of the oldest messages kept. Raises: Retryable."""
        wanted = list(partitions)
        return await _answer(self._reader.beginning_offsets(wanted), "read begin offsets") if wanted else {}

    async def committed(self, group: str) -> dict[TopicPartition, int]:
        """Where the group would go on; partitions without a commit are absent. Raises: Retryable."""
        coordinator = await self._coordinator(group)
        found = await _answer(self._admin.list_consumer_group_offsets(group, coordinator), f"read offsets of {group}")
        return {tp: at.offset for tp, at in found.items() if at.offset >= 0}

    async def members(self, group: str) -> int:
        """Raises: Retryable."""
        coordinator = await self._coordinator(group)
        (answer,) = await _answer(self._admin.describe_consumer_groups([group], coordinator), f"describe {group}")
        return sum(len(described["members"]) for described in answer.to_object()["groups"])

    async def _coordinator(self, group: str) -> int:
        async def ask() -> int:
            while True:
                try:
                    return int(await self._admin.find_coordinator(group))
                except GroupCoordinatorNotAvailableError:  # a new broker makes its offsets topic at the first ask
                    await asyncio.sleep(COORDINATOR_POLL)

        return await _answer(ask(), f"find the coordinator of {group}")

    async def behind(self, group: str, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Messages a group has not finished, per partition (compacted ones count). Raises: Retryable."""
        wanted = list(partitions)
        # Committed first: asked the other way round, progress in between would look like a negative lag.
        committed = await self.committed(group)
        begins, ends = await self.begins(wanted), await self.ends(wanted)
        return {tp: max(0, ends[tp] - max(committed.get(tp, 0), begins[tp])) for tp in wanted}

    async def kept(self, partitions: Iterable[TopicPartition]) -> int:
        """Messages in partitions that are not compacted. Raises: Retryable."""
        wanted = list(partitions)
        begins, ends = await self.begins(wanted), await self.ends(wanted)
        return sum(ends[tp] - begins[tp] for tp in wanted)


@asynccontextmanager
async def broker(settings: Settings) -> AsyncIterator[Broker]:
    """A connected Broker. Raises: Retryable."""
    client = Broker(bootstrap_servers(settings))
    try:
        await client.start()
        yield client
    finally:
        await client.stop()


async def lags(client: Broker, settings: Settings, stages: Mapping[str, Sequence[Topic]]) -> dict[str, GroupLag]:
    """Lag, members and dead letters of each stage, given the topics it reads.

    Raises:
        Retryable: the broker does not answer.
    """
    topics = await client.topics()

    def partitions(topic: Topic) -> list[TopicPartition]:
        name = prefixed(settings, topic)
        return [TopicPartition(name, partition) for partition in sorted(topics.get(name, ()))]

    found = {}
    for stage, read in stages.items():
        group = group_id(settings, stage)
        behind = await client.behind(group, [tp for topic in read for tp in partitions(topic)])
        buried = [tp for topic in read if topic.dead_letters for tp in partitions(dead_letter_topic(topic))]
        found[stage] = GroupLag(
            lag=sum(behind.values()),
            members=await client.members(group),
            dead_letters=await client.kept(buried),
        )
    return found


async def ensure_topics(bootstrap: str, settings: Settings) -> list[str]:
    """Create what is missing of schemas/topics.py, grow and reconfigure what differs.

    Returns:
        The names of the topics created.

    Raises:
        Retryable: the broker does not answer. TopicMismatch: names the topic and what is wrong with it.
    """
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap, request_timeout_ms=int(REQUEST_TIMEOUT * 1000))
    try:
        await _answer(admin.start(), "connect")
        wanted = {prefixed(settings, topic): topic for topic in all_topics()}
        existing = {
            topic["topic"]: len(topic["partitions"])
            for topic in await _answer(admin.describe_topics(None), "list topics")
        }
        missing = [name for name in wanted if name not in existing]
        created = await _create(admin, settings, {name: wanted[name] for name in missing})
        checked = {name: topic for name, topic in wanted.items() if name not in created}
        await _check_partitions(admin, settings, {name: existing.get(name) for name in checked})
        await _check_configs(admin, checked)
    finally:
        await _close(admin.close())
    return created


async def _create(admin: Any, settings: Settings, topics: Mapping[str, Topic]) -> list[str]:
    if not topics:
        return []
    new = [
        NewTopic(name, settings.partitions, settings.replication, topic_configs=topic.config)
        for name, topic in topics.items()
    ]
    answer = await _answer(admin.create_topics(new), "create topics")
    created = []
    for name, code, *message in answer.topic_errors:
        error = for_code(code)
        if code == 0:
            created.append(name)
        elif error is not TopicAlreadyExistsError:  # another process was quicker: fine
            detail = f"topic {name} cannot be created: {error.__name__} {' '.join(filter(None, message))}"
            raise (Retryable if error.retriable else TopicMismatch)(detail)
    return created


async def _check_partitions(admin: Any, settings: Settings, counts: Mapping[str, int | None]) -> None:
    # More partitions would move keys to other partitions and break their order; so a topic that was made
    # with fewer is refused, not grown. One made with more is fine.
    for name, count in counts.items():
        if count is not None and count < settings.partitions:
            raise TopicMismatch(
                f"topic {name} has {count} partitions, the setting `partitions` wants {settings.partitions}; "
                f"lower the setting (adding partitions would break the order of existing keys)"
            )


async def _check_configs(admin: Any, topics: Mapping[str, Topic]) -> None:
    if not topics:
        return
    answers = await _answer(
        admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name) for name in topics]),
        "read topic settings",
    )
    changes = []
    for answer in answers:
        for error_code, message, _, name, entries in answer.resources:
            if error_code:
                raise Retryable(f"settings of topic {name} cannot be read: {message}")
            have = {entry[0]: entry[1] for entry in entries}
            wrong = {key: value for key, value in topics[name].config.items() if have.get(key) != value}
            if not wrong:
                continue
            if "cleanup.policy" in wrong:
                raise TopicMismatch(
                    f"topic {name} has cleanup.policy={have.get('cleanup.policy')}, must be "
                    f"{wrong['cleanup.policy']}: somebody else's topic? Choose another topic_prefix, "
                    f"or change the topic by hand"
                )
            # AlterConfigs replaces all settings of the topic, so what others set there goes along.
            own = {entry[0]: entry[1] for entry in entries if entry[3] == TOPIC_CONFIG_SOURCE}
            changes.append(ConfigResource(ConfigResourceType.TOPIC, name, own | wrong))
            log.info("topic settings corrected", topic=name, **{k.replace(".", "_"): v for k, v in wrong.items()})
    if changes:
        for answer in await _answer(admin.alter_configs(changes), "change topic settings"):
            for error_code, message, _, name in answer.resources:
                if error_code:
                    raise TopicMismatch(f"settings of topic {name} cannot be changed: {message}")


async def _answer(question: Awaitable[Value], what: str) -> Value:
    """Raises: Retryable: no answer in time, or an error of the broker."""
    try:
        return await asyncio.wait_for(question, REQUEST_TIMEOUT)
    except (KafkaError, TimeoutError, OSError) as err:
        raise Retryable(f"Kafka: cannot {what}: {err!r}") from err


async def _close(closing: Awaitable[None]) -> None:
    try:
        await asyncio.wait_for(closing, REQUEST_TIMEOUT)
    except (KafkaError, TimeoutError, OSError) as err:
        log.warning("Kafka client did not stop cleanly", error=repr(err))
