"""Reads and writes topics as anybody with a Kafka client would: nothing of the product in between."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from schemas.topics import MAX_MESSAGE_BYTES, RECORD_OVERHEAD_BYTES
from tests.faults.storm.world import World

POLL_MS = 500
COMMIT_LIMIT = 15.0  # seconds
EMPTY_LIMIT = 60.0  # seconds until a group must be empty: a session is 10
Offsets = dict[TopicPartition, int]


def partitions(world: World, names: Iterable[str]) -> list[TopicPartition]:
    return [TopicPartition(name, number) for name in names for number in range(world.partitions[name])]


@asynccontextmanager
async def reader(world: World, group: str | None = None) -> AsyncIterator[Any]:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=world.kafka,
        group_id=group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=MAX_MESSAGE_BYTES + RECORD_OVERHEAD_BYTES,
    )
    await consumer.start()
    await asyncio.sleep(0)  # aiokafka cannot stop a task that has not begun
    try:
        yield consumer
    finally:
        await consumer.stop()


async def read(world: World, names: Sequence[str], since: Offsets | None = None) -> list[Any]:
    """All messages of these topics, each partition in order."""
    async with reader(world) as consumer:
        wanted = partitions(world, names)
        consumer.assign(wanted)
        ends = await consumer.end_offsets(wanted)
        for tp, begin in (await consumer.beginning_offsets(wanted)).items():
            consumer.seek(tp, max(begin, (since or {}).get(tp, 0)))
        found: list[Any] = []
        left = set(wanted)
        while left:
            for tp in list(left):
                if await consumer.position(tp) >= ends[tp]:
                    left.discard(tp)
                    consumer.pause(tp)
            if left:
                for records in (await consumer.getmany(timeout_ms=POLL_MS)).values():
                    found += records
        return sorted(found, key=lambda m: (m.topic, m.partition, m.offset))


async def ends(world: World, names: Sequence[str]) -> Offsets:
    """Offsets the next messages will get."""
    async with reader(world) as consumer:
        wanted = partitions(world, names)
        consumer.assign(wanted)
        found: Offsets = await consumer.end_offsets(wanted)
        return found


@asynccontextmanager
async def writer(world: World) -> AsyncIterator[Any]:
    producer = AIOKafkaProducer(
        bootstrap_servers=world.kafka,
        acks="all",
        max_request_size=MAX_MESSAGE_BYTES + RECORD_OVERHEAD_BYTES,
    )
    await producer.start()
    try:
        yield producer
    finally:
        await producer.stop()


@asynccontextmanager
async def admin(world: World) -> AsyncIterator[Any]:
    client = AIOKafkaAdminClient(bootstrap_servers=world.kafka)
    await client.start()
    try:
        yield client
    finally:
        await client.close()


async def _committed(world: World) -> dict[str, Offsets]:
    """What each group of the ingest stages has committed, whatever the groups are called."""
    async with admin(world) as client:
        listed = await client.list_consumer_groups()
        names = sorted({name for name, _ in listed if name.startswith(f"{world.prefix}pagewire-")})
        found = {name: await client.list_consumer_group_offsets(name) for name in names}
    return {name: {tp: at.offset for tp, at in offsets.items()} for name, offsets in found.items()}


async def behind(world: World) -> dict[str, int]:
    """How many messages each group has not finished, of the topics it has ever committed to."""
    found: dict[str, int] = {}
    committed = await _committed(world)
    async with reader(world) as consumer:
        for name, offsets in committed.items():
            wanted = partitions(world, {tp.topic for tp in offsets})
            if not wanted:  # it has not committed yet; aiokafka waits for ever for the ends of nothing
                continue
            consumer.assign(wanted)
            last = await consumer.end_offsets(wanted)
            first = await consumer.beginning_offsets(wanted)
            found[name] = sum(max(0, last[tp] - max(first[tp], offsets.get(tp, 0))) for tp in wanted)
    return found


async def rewind(world: World) -> int:
    """Every group starts again from the first message of its topics. Returns how many messages that is.

    Nobody may be in the groups; a member that went without a word is one until its session is over.
    """
    total = 0
    for name, offsets in (await _committed(world)).items():
        async with reader(world, group=name) as consumer:
            wanted = partitions(world, {tp.topic for tp in offsets})
            consumer.assign(wanted)
            begins = await consumer.beginning_offsets(wanted)
            end = time.monotonic() + EMPTY_LIMIT
            while True:
                try:
                    await asyncio.wait_for(consumer.commit(begins), COMMIT_LIMIT)
                    break
                except (KafkaError, TimeoutError):
                    if time.monotonic() > end:
                        raise
                    await asyncio.sleep(1.0)
            total += sum(max(0, at) for at in offsets.values())
    return total
