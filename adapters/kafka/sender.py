"""Sends messages: idempotently, confirmed by all replicas, and recovering after a refused message."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, KafkaTimeoutError, MessageSizeTooLargeError, RecordTooLargeError

from adapters.kafka.access import KafkaDenied, connection, forbidden, started
from adapters.kafka.client import (
    METADATA_AGE,
    REQUEST_TIMEOUT,
    close,
    from_broker,
    partition_of,
    prefixed,
)
from adapters.kafka.settings import KafkaSettings
from pipelines.runtime import tracing
from pipelines.runtime.errors import PagewireError, Retryable, TooLarge
from pipelines.runtime.record import TRACE_HEADER, Headers, Lane, in_lane
from pipelines.runtime.record import trace_id as current_trace
from schemas.base import Message
from schemas.topics import MAX_MESSAGE_BYTES, RECORD_OVERHEAD_BYTES, Topic

log = structlog.get_logger(__name__)

SEND_TIMEOUT = 30.0  # seconds until a message counts as not confirmed; the idempotent producer itself never gives up
# Seconds instead while no broker answers: enough for the restart of a single broker.
NO_BROKER_TIMEOUT = 10.0
# Seconds instead after a timeout, until Kafka confirms a message again: an editor gets the error soon while Kafka is
# down. The longer timeouts apply while Kafka is slow or one of several brokers restarts.
DOWN_TIMEOUT = 3.0
BATCH_BYTES = 256 * 1024  # of small messages of one partition that are sent together
MAX_RECORD_BYTES = MAX_MESSAGE_BYTES + RECORD_OVERHEAD_BYTES


@dataclass(frozen=True)
class Outgoing:
    """A message to send."""

    topic: Topic
    key: str
    message: Message
    partition_key: str | None = None
    trace_id: str | None = None
    lane: Lane = "save"


@dataclass(frozen=True)
class Sent:
    """Where the broker put a message."""

    partition: int
    offset: int


@dataclass(frozen=True)
class _Queued:
    """A message in the producer's buffer."""

    producer: Any
    topic: str
    future: asyncio.Future[Any]


class KafkaSender:
    """An idempotent producer that waits for the broker's confirmation by all replicas.

    After a refused batch, aiokafka's idempotent producer gets OutOfOrderSequenceNumber on that partition for ever.
    So a new producer replaces it after every error that aiokafka does not retry.
    """

    def __init__(self, settings: KafkaSettings, *, linger_ms: int = 0) -> None:
        """`linger_ms`: how long a request waits for more messages (imports); 0: not at all."""
        self._settings = settings
        self._linger_ms = linger_ms
        self._producer: Any = None
        self._down = False
        self._replacing = asyncio.Lock()
        self._retired: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Does nothing if started already. Raises: Retryable: no broker."""
        if self._producer is None:
            self._producer = await self._new_producer()

    async def stop(self) -> None:
        """Send buffered messages, within a limit, and close."""
        producer, self._producer = self._producer, None
        if producer is not None:
            await close(producer.stop())
        await asyncio.gather(*self._retired)

    async def _new_producer(self) -> Any:
        producer = AIOKafkaProducer(
            **connection(self._settings),
            client_id="pagewire",
            acks="all",
            enable_idempotence=True,
            compression_type="lz4",
            linger_ms=self._linger_ms,
            max_batch_size=BATCH_BYTES,
            # The client checks sizes before compression, as our limits count them.
            max_request_size=MAX_RECORD_BYTES,
            request_timeout_ms=int(REQUEST_TIMEOUT * 1000),
            metadata_max_age_ms=int(METADATA_AGE * 1000),
        )
        try:
            await started(from_broker(producer.start(), "start a producer"), self._settings)
        except BaseException:
            await close(producer.stop())
            raise
        return producer

    async def _replace(self, broken: Any) -> None:
        async with self._replacing:
            if self._producer is not broken:  # another send has replaced it, or the sender is stopped
                return
            log.warning("Kafka producer replaced")
            self._producer = await self._new_producer()
        retired = asyncio.create_task(close(broken.stop()), name="retired Kafka producer")
        self._retired.add(retired)
        retired.add_done_callback(self._retired.discard)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def send(
        self,
        topic: Topic,
        key: str,
        message: Message,
        *,
        partition_key: str | None = None,
        trace_id: str | None = None,
        lane: Lane | None = None,
    ) -> None:
        """Raises: Retryable: not confirmed. TooLarge."""
        trace = trace_id or current_trace.get() or None
        lane = lane or "save"
        outgoing = Outgoing(topic, key, message, partition_key, trace, lane)
        # Spans only for messages to stages: an answer has hundreds of events.
        if not (topic.dead_letters and tracing.is_on()):
            await self._confirmed(await self._queue(outgoing))
            return
        with tracing.sending(prefixed(self._settings, topic), lane) as sending:
            sent = await self._confirmed(await self._queue(outgoing, tracing.carried()))
            sending.confirmed(sent.partition, sent.offset)

    async def send_all(
        self,
        topic: Topic,
        key: str,
        messages: Sequence[Message],
        *,
        trace_id: str | None = None,
        lane: Lane | None = None,
    ) -> None:
        """Raises: as `send`."""
        trace, lane = trace_id or current_trace.get() or None, lane or "save"
        await self.send_many(Outgoing(topic, key, each, trace_id=trace, lane=lane) for each in messages)

    async def send_many(self, messages: Iterable[Outgoing]) -> list[Sent]:
        """Send in this order; return when all are confirmed.

        Raises:
            Retryable, TooLarge: the first failure; the other messages may have been sent.
        """
        queued: list[_Queued] = []
        refused: PagewireError | None = None
        for message in messages:
            try:
                queued.append(await self._queue(message))
            except PagewireError as err:
                refused = err  # raised when the messages before it are confirmed: their order is settled then
                break
        results = await asyncio.gather(*(self._confirmed(one) for one in queued), return_exceptions=True)
        for result in [*results, refused]:
            if isinstance(result, BaseException):
                raise result
        return [result for result in results if isinstance(result, Sent)]

    async def send_bytes(
        self, topic: Topic, key: bytes | None, value: bytes | None, headers: Headers, *, partition: int | None = None
    ) -> None:
        """Send bytes unchanged, to `partition` (which must exist; default: by the key). Raises: as `send`."""
        if key is None and value is None:
            value = b""  # aiokafka sends no message without key and value, but a dead letter may be of such a message
        await self._confirmed(await self._put(topic, key, value, headers, partition))

    async def _queue(self, outgoing: Outgoing, carried: Headers = ()) -> _Queued:
        """`carried`: headers in addition to ours."""
        topic = outgoing.topic
        partition = None
        if outgoing.partition_key is not None:
            known = await from_broker(
                self._running().partitions_for(prefixed(self._settings, topic)), f"describe {topic.name}"
            )
            partition = partition_of(outgoing.partition_key.encode(), len(known))
        headers = carried
        if outgoing.trace_id is not None:
            headers = ((TRACE_HEADER, outgoing.trace_id.encode("ascii", "replace")), *carried)
        headers = in_lane(headers, outgoing.lane)
        return await self._put(topic, outgoing.key.encode(), outgoing.message.encode(), headers, partition)

    async def _put(
        self, topic: Topic, key: bytes | None, value: bytes | None, headers: Headers, partition: int | None
    ) -> _Queued:
        """Put the message into the producer's buffer, which keeps the order."""
        name = prefixed(self._settings, topic)
        producer = self._running()
        try:
            async with asyncio.timeout(self._timeout()):
                # The caller may know a new partition before the producer does.
                if partition is not None and partition not in await producer.partitions_for(name):
                    await producer.client.force_metadata_update()
                future = await producer.send(name, value, key=key, partition=partition, headers=list(headers))
        except MessageSizeTooLargeError as err:
            raise TooLarge(
                f"message for {name} has {len(value or b'')} bytes; the bus takes {MAX_MESSAGE_BYTES}"
            ) from err
        except (KafkaError, TimeoutError) as err:
            # The buffer is full of unconfirmed messages; aiokafka raises an error of its own for it.
            self._down |= isinstance(err, KafkaTimeoutError | TimeoutError)
            raise self._refused(err, f"Kafka takes no message for {name}") from err
        future.add_done_callback(self._note_confirmation)
        return _Queued(producer, name, future)

    async def _confirmed(self, queued: _Queued) -> Sent:
        try:
            confirmed = await self._confirmation(queued)
        except (KafkaError, TimeoutError) as err:
            self._down |= isinstance(err, TimeoutError)
            if isinstance(err, KafkaError) and not err.retriable:
                await self._replace(queued.producer)
            if isinstance(err, MessageSizeTooLargeError | RecordTooLargeError):
                raise TooLarge(f"Kafka refuses a message for {queued.topic} as too large") from err
            raise self._refused(err, f"Kafka did not confirm a message for {queued.topic}") from err
        return Sent(confirmed.partition, confirmed.offset)

    async def _confirmation(self, queued: _Queued) -> Any:
        """Raises: KafkaError. TimeoutError: no confirmation in time."""
        # The producer goes on trying after the timeout. A late confirmation shows that Kafka is back.
        try:
            async with asyncio.timeout(min(self._timeout(), NO_BROKER_TIMEOUT)):
                return await asyncio.shield(queued.future)
        except TimeoutError:
            if self._down:
                raise
        async with asyncio.timeout(SEND_TIMEOUT - NO_BROKER_TIMEOUT):
            if not await queued.producer.client.force_metadata_update():
                raise TimeoutError("no broker answers")
            return await asyncio.shield(queued.future)

    def _timeout(self) -> float:
        return DOWN_TIMEOUT if self._down else SEND_TIMEOUT

    def _note_confirmation(self, message: asyncio.Future[Any]) -> None:
        if not message.cancelled() and message.exception() is None:
            self._down = False

    def _refused(self, err: Exception, what: str) -> Retryable:
        if (said := forbidden(err)) is not None:
            return KafkaDenied(f"{what}: {said}")
        return Retryable(f"{what}: {err!r}")

    def _running(self) -> Any:
        if self._producer is None:
            raise Retryable("the Kafka producer is not running")
        return self._producer
