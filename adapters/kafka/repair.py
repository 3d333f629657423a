"""More copies of topics that have fewer than the settings want, by Kafka's reassignments.

    1 of 3 copies ─▶ AlterPartitionReassignments ─▶ brokers copy until all are in sync ─▶ min.insync.replicas

Copies are only added, behind those that there are: whoever leads a partition goes on leading it, and saves and answers
go on meanwhile. Topics come one after the other, so that brokers are not asked for everything at once.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import for_code
from aiokafka.protocol.admin import AlterPartitionReassignmentsRequest, ListPartitionReassignmentsRequest

from adapters.kafka.access import connection, denied, started
from adapters.kafka.client import REQUEST_TIMEOUT, close, from_broker, prefixed
from adapters.kafka.settings import KafkaSettings
from adapters.kafka.topics import ensure_topics, least_in_sync
from pipelines.runtime.errors import Retryable, TopicMismatch
from schemas.topics import all_topics

LOOK = 0.2  # seconds between two looks at what is being copied
TIMEOUT_MS = int(REQUEST_TIMEOUT * 1000)
NO_TAGS: dict[int, bytes] = {}  # of the protocol's flexible versions; we have none to send

Assignment = Mapping[int, Sequence[int]]  # partition -> brokers, its preferred leader first


@dataclass(frozen=True)
class Move:
    """A reassignment under way: brokers that are not done copying, and those that go when they are."""

    adding: frozenset[int] = frozenset()
    removing: frozenset[int] = frozenset()


NO_MOVE = Move()


@dataclass(frozen=True)
class Copying:
    """How far a topic is."""

    topic: str
    done: int
    partitions: int


@dataclass(frozen=True)
class Repaired:
    """What was done to a topic."""

    topic: str
    partitions: int  # that got copies
    copies_before: int  # the fewest of a partition
    copies: int
    min_in_sync: int  # at least so many have a message before it counts as sent


async def repair_topics(
    bootstrap: str, settings: KafkaSettings, said: Callable[[Copying], None] = lambda _: None
) -> list[Repaired]:
    """Raise every topic of ours to PAGEWIRE_REPLICATION copies, and wait until they are in sync.

    Goes on where an earlier run was stopped. What has enough copies is left alone.

    Raises:
        Retryable: too few brokers are there, or the broker does not answer.
        TopicMismatch: Kafka refuses the reassignment.
    """
    admin = AIOKafkaAdminClient(**connection(settings, bootstrap), request_timeout_ms=TIMEOUT_MS)
    try:
        await started(from_broker(admin.start(), "connect"), settings, bootstrap)
        repaired = await _repair(admin, settings, said)
    finally:
        await close(admin.close())
    if repaired:
        # Sets min.insync.replicas by the copies that there are now.
        await ensure_topics(bootstrap, settings, copied={one.topic: one.copies for one in repaired})
    return repaired


async def _repair(admin: Any, settings: KafkaSettings, said: Callable[[Copying], None]) -> list[Repaired]:
    wanted = settings.replication
    ours = {prefixed(settings, topic) for topic in all_topics()}
    racks = {
        broker["node_id"]: broker["rack"]
        for broker in (await from_broker(admin.describe_cluster(), "list brokers"))["brokers"]
    }
    moves = await reassignments(admin)
    topics: dict[str, dict[int, list[int]]] = {}
    for topic in await from_broker(admin.describe_topics(None), "list topics"):
        if (name := topic["topic"]) in ours:
            topics[name] = {
                p["partition"]: [
                    b for b in p["replicas"] if b not in moves.get((name, p["partition"]), NO_MOVE).removing
                ]
                for p in topic["partitions"]
            }
    short = [name for name, there in topics.items() if any(len(brokers) < wanted for brokers in there.values())]
    if short and len(racks) < wanted:
        raise Retryable(
            f"{len(short)} topics have fewer than the {wanted} copies that PAGEWIRE_REPLICATION wants, and "
            f"{len(racks)} {'broker is' if len(racks) == 1 else 'brokers are'} there: start more, "
            "or lower PAGEWIRE_REPLICATION"
        )
    load = Counter(broker for there in topics.values() for brokers in there.values() for broker in brokers)
    repaired = []
    for name, there in sorted(topics.items()):
        more = spread(there, wanted, racks, load)
        # What an earlier run has asked for is waited for, not asked for again.
        asked = {p: move for (topic, p), move in moves.items() if topic == name and move.adding and not move.removing}
        if more:
            await reassign(admin, {name: more})
        if waiting := {*more, *asked}:
            await _copied(admin, name, waiting, said)
            before = min(len(brokers) - len(asked.get(p, NO_MOVE).adding) for p, brokers in there.items())
            repaired.append(Repaired(name, len(waiting), before, wanted, least_in_sync(wanted)))
    return repaired


def spread(there: Assignment, wanted: int, racks: Mapping[int, str | None], load: Counter[int]) -> dict[int, list[int]]:
    """Brokers for every partition with too few: those it has, then those of other racks, then those with least to do.

    Args:
        racks: Every broker and the rack it stands in; None: not said.
        load: Copies by broker; what is added here is counted in.
    """
    found = {}
    for partition, brokers in sorted(there.items()):
        if len(brokers) >= wanted:
            continue
        chosen = list(brokers)
        while len(chosen) < wanted:
            taken = {racks.get(broker) for broker in chosen} - {None}
            free = [broker for broker in racks if broker not in chosen]
            chosen.append(min(free, key=lambda b: (racks[b] in taken, load[b], b)))
            load[chosen[-1]] += 1
        found[partition] = chosen
    return found


async def reassign(admin: Any, wanted: Mapping[str, Assignment]) -> None:
    """Ask Kafka to move partitions to these brokers; it goes on by itself.

    Raises:
        Retryable: no answer, or not now. TopicMismatch: refused; names the partition and why.
    """
    topics = [
        (name, [(partition, list(brokers), NO_TAGS) for partition, brokers in moves.items()], NO_TAGS)
        for name, moves in wanted.items()
    ]
    answer = await _ask(admin, AlterPartitionReassignmentsRequest(TIMEOUT_MS, topics, NO_TAGS), "reassign partitions")
    for name, partitions, _ in answer.responses:
        for partition, code, message, _ in partitions:
            _check(code, message, f"partition {partition} of topic {name} cannot get more copies")


async def reassignments(admin: Any) -> dict[tuple[str, int], Move]:
    """Which partitions are being moved. Raises: Retryable."""
    answer = await _ask(admin, ListPartitionReassignmentsRequest(TIMEOUT_MS, None, NO_TAGS), "list reassignments")
    return {
        (name, partition): Move(frozenset(adding), frozenset(removing))
        for name, partitions, _ in answer.topics
        for partition, _, adding, removing, _ in partitions
    }


async def _copied(admin: Any, topic: str, partitions: Set[int], said: Callable[[Copying], None]) -> None:
    """Until none of a topic's partitions is being copied any more."""
    while True:
        left = sum(name == topic and p in partitions for name, p in await reassignments(admin))
        said(Copying(topic, len(partitions) - left, len(partitions)))
        if not left:
            return
        await asyncio.sleep(LOOK)


async def _ask(admin: Any, request: Any, what: str) -> Any:
    # aiokafka knows these requests, but its admin client has no methods for them. Every broker passes them on.
    answer = await from_broker(admin._send_to_controller(request), what)
    _check(answer.error_code, answer.error_message, f"cannot {what}")
    return answer


def _check(code: int, message: str | None, what: str) -> None:
    if missing_right := denied(code, what):
        raise missing_right
    if code:
        error = for_code(code)
        raise (Retryable if error.retriable else TopicMismatch)(f"{what}: {error.__name__} {message or ''}".rstrip())
