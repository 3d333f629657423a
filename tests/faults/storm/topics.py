"""Reads and writes topics as anybody with a Kafka client would: nothing of the product in between."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from aiokafka.errors import KafkaError

from adapters.kafka.shared_tail import GATEWAYS
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


@dataclass(frozen=True)
class Group:
    """A consumer group as the broker knows it."""

    committed: Offsets
    assigned: frozenset[TopicPartition]  # to its members

    @property
    def topics(self) -> set[str]:
        """Those that it reads; a group that has committed nothing yet reads what its members were given."""
        return {tp.topic for tp in (*self.committed, *self.assigned)}


async def _groups(world: World) -> dict[str, Group]:
    """Those of the stages, whatever they are called; not the gateways' group, which never commits."""
    async with admin(world) as client:
        listed = await client.list_consumer_groups()
        names = sorted({name for name, _ in listed if name.startswith(f"{world.prefix}pagewire-")})
        names = [name for name in names if name != world.prefix + GATEWAYS]
        return {name: await _group(client, name) for name in names}


async def _group(client: Any, name: str) -> Group:
    coordinator = await client.find_coordinator(name)
    committed = await client.list_consumer_group_offsets(name, coordinator)
    (answer,) = await client.describe_consumer_groups([name], coordinator)
    given = [
        ConsumerProtocolMemberAssignment.decode(member["member_assignment"]).partitions()
        for group in answer.to_object()["groups"]
        for member in group["members"]
        if member["member_assignment"]  # none while the group is put together
    ]
    return Group({tp: at.offset for tp, at in committed.items()}, frozenset(tp for some in given for tp in some))


async def behind(world: World) -> dict[str, int]:
    """How many messages each group has not finished, of the topics that it reads."""
    found: dict[str, int] = {}
    groups = await _groups(world)
    async with reader(world) as consumer:
        for name, group in groups.items():
            wanted, offsets = partitions(world, group.topics), group.committed
            if not wanted:  # of no partitions aiokafka never tells the end
                found[name] = 0
                continue
            consumer.assign(wanted)
            last = await consumer.end_offsets(wanted)
            first = await consumer.beginning_offsets(wanted)
            found[name] = sum(max(0, last[tp] - max(first[tp], offsets.get(tp, 0))) for tp in wanted)
    return found


async def waiting(world: World, group: str, name: str) -> list[Any]:
    """The messages of a topic that a group has not finished."""
    committed = (await _groups(world))[group].committed
    return await read(world, [name], committed)


async def rewind(world: World) -> int:
    """Every group starts again from the first message of its topics. Returns how many messages that is.

    Nobody may be in the groups; a member that went without a word is one until its session is over.
    """
    total = 0
    for name, group in (await _groups(world)).items():
        if not group.committed:
            continue
        async with reader(world, group=name) as consumer:
            wanted = partitions(world, group.topics)
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
            total += sum(max(0, at) for at in group.committed.values())
    return total
