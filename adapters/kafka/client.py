"""Shared by all Kafka clients: names, timeouts, and the translation of errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import structlog
from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError, for_code
from aiokafka.partitioner import murmur2

from adapters.kafka.access import KafkaDenied, connection, denied, forbidden, started
from adapters.kafka.settings import KafkaSettings
from pipelines.runtime.errors import Retryable, TopicMismatch
from pipelines.runtime.record import Lane
from pipelines.runtime.stage import StageGroup
from schemas.topics import Topic

log = structlog.get_logger(__name__)

# Seconds for one answer of the broker. Our own limit is longer than the client's: a client that times out closes the
# connection. A client that we cancel keeps it, and would go on with a dead connection for ever.
REQUEST_TIMEOUT = 10.0
ANSWER_TIMEOUT = 15.0
METADATA_AGE = 5.0  # seconds until a client learns of new partitions of a topic (aiokafka: 5 minutes)
CLOSE_TIMEOUT = 5.0  # seconds; messages not confirmed by then are not acknowledged, and are sent again

Value = TypeVar("Value")


def prefixed(settings: KafkaSettings, topic: Topic) -> str:
    """The broker's name of a topic."""
    return settings.topic_prefix + topic.name


def group_id(settings: KafkaSettings, stage: str, lane: Lane | None = None) -> str:
    """The consumer group of a stage in a lane."""
    return StageGroup(stage, lane).name(settings.topic_prefix)


def partition_of(key: bytes, partitions: int) -> int:
    """Kafka's default: murmur2 of the key, the same in the Java client."""
    return int((murmur2(key) & 0x7FFFFFFF) % partitions)


def new_consumer(settings: KafkaSettings, **more: Any) -> AIOKafkaConsumer:
    """aiokafka's consumer, not connected; it commits nothing. `more`: its further options."""
    options = {"auto_offset_reset": "earliest", "request_timeout_ms": int(REQUEST_TIMEOUT * 1000), **more}
    return AIOKafkaConsumer(**connection(settings), enable_auto_commit=False, **options)


@asynccontextmanager
async def admin_client(bootstrap: str, settings: KafkaSettings) -> AsyncIterator[Any]:
    """aiokafka's client for administrators, connected. Raises: Retryable."""
    admin = AIOKafkaAdminClient(**connection(settings, bootstrap), request_timeout_ms=int(REQUEST_TIMEOUT * 1000))
    try:
        await started(from_broker(admin.start(), "connect"), settings, bootstrap)
        yield admin
    finally:
        await close(admin.close())


def check(code: int, message: str | None, what: str, *, retried: type[KafkaError] | None = None) -> None:
    """Check the code in a broker's answer.

    Args:
        message: the broker's own.
        what: the begin of our message.
        retried: an error that counts as temporary here.

    Raises:
        KafkaDenied: a right is missing. Retryable: a temporary error. TopicMismatch: the broker refuses.
    """
    if missing_right := denied(code, what):
        raise missing_right
    if code:
        error = for_code(code)
        kind = Retryable if error.retriable or error is retried else TopicMismatch
        raise kind(f"{what}: {error.__name__} {message or ''}".rstrip())


async def from_broker(question: Awaitable[Value], what: str) -> Value:
    """The broker's answer; `what` completes "cannot ..." for the error.

    Raises:
        KafkaDenied: a right is missing. Retryable: no answer in time, or an error of the broker.
    """
    try:
        return await _within(ANSWER_TIMEOUT, question)
    except (KafkaError, TimeoutError, OSError) as err:
        if (said := forbidden(err)) is not None:
            raise KafkaDenied(f"Kafka: cannot {what}: {said}") from err
        raise Retryable(f"Kafka: cannot {what}: {err!r}") from err


async def close(closing: Awaitable[None]) -> None:
    """Wait for a client to close, within a limit. Errors are only logged."""
    task = asyncio.current_task()
    assert task, "awaited"
    before = task.cancelling()
    try:
        await _within(CLOSE_TIMEOUT, closing)
    except (KafkaError, TimeoutError, OSError, asyncio.CancelledError) as err:
        if task.cancelling() > before:
            raise
        log.warning("Kafka client did not stop cleanly", error=repr(err))


async def stop(consumer: AIOKafkaConsumer) -> None:
    """Stop a consumer. Errors are only logged.

    Where its broker is away, aiokafka raises the cancellation of its own fetches, and leaves the connections open.
    """
    await close(consumer.stop())
    await close(consumer._client.close())


async def _within(seconds: float, work: Awaitable[Value]) -> Value:
    """The result of `work`, within the limit. A cancellation meanwhile is never lost.

    Python 3.11's `asyncio.wait_for` loses a cancellation that comes at the moment of the result, and closing clients
    swallow one: a reading task would never end.
    """
    task = asyncio.current_task()
    assert task, "awaited"
    before = task.cancelling()
    try:
        async with asyncio.timeout(seconds):
            return await work
    finally:
        if task.cancelling() > before:
            raise asyncio.CancelledError
