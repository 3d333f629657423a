"""Adds copies to topics that have fewer than configured, by Kafka's reassignments.

    1 of 3 copies ─▶ AlterPartitionReassignments ─▶ brokers copy until all are in sync ─▶ min.insync.replicas

Copies are appended to the existing ones: a partition keeps its leader, and saves and answers go on meanwhile. Topics
are repaired one after the other, to limit the load on brokers.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from aiokafka.protocol.admin import AlterPartitionReassignmentsRequest, ListPartitionReassignmentsRequest

from adapters.kafka.client import REQUEST_TIMEOUT, admin_client, check, from_broker, prefixed
from adapters.kafka.settings import KafkaSettings
from adapters.kafka.topics import ensure_topics, least_in_sync
from pipelines.runtime.errors import Retryable
from schemas.topics import all_topics

COPY_POLL = 0.2  # seconds
TIMEOUT_MS = int(REQUEST_TIMEOUT * 1000)
NO_TAGS: dict[int, bytes] = {}  # tagged fields of the protocol's flexible versions; we send none

Assignment = Mapping[int, Sequence[int]]  # partition -> brokers, its preferred leader first


@dataclass(frozen=True)
class Move:
    """A running reassignment: brokers that still copy, and brokers that will be removed."""

    adding: frozenset[int] = frozenset()
    removing: frozenset[int] = frozenset()


NO_MOVE = Move()


@dataclass(frozen=True)
class Copying:
    """The progress of a topic."""

    topic: str
    done: int
    partitions: int


@dataclass(frozen=True)
class Repaired:
    """The changes to a topic."""

    topic: str
    partitions: int  # with new copies
    copies_before: int  # of the partition with the fewest
    copies: int
    min_in_sync: int  # its min.insync.replicas


async def repair_topics(
    bootstrap: str, settings: KafkaSettings, report: Callable[[Copying], None] = lambda _: None
) -> list[Repaired]:
    """Raise every topic of ours to PAGEWIRE_REPLICATION copies, and wait until they are in sync.

    Resumes an interrupted run. Topics with enough copies are left alone.

    Raises:
        Retryable: there are too few brokers, or the broker does not answer.
        TopicMismatch: Kafka refuses the reassignment.
    """
    async with admin_client(bootstrap, settings) as admin:
        repaired = await _repair(admin, settings, report)
    if repaired:
        # Sets min.insync.replicas for the new number of copies.
        await ensure_topics(bootstrap, settings, copied={one.topic: one.copies for one in repaired})
    return repaired


async def _repair(admin: Any, settings: KafkaSettings, report: Callable[[Copying], None]) -> list[Repaired]:
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
        # Wait for the reassignments of an interrupted run instead of repeating them.
        asked = {p: move for (topic, p), move in moves.items() if topic == name and move.adding and not move.removing}
        if more:
            await reassign(admin, {name: more})
        if waiting := {*more, *asked}:
            await _copied(admin, name, waiting, report)
            before = min(len(brokers) - len(asked.get(p, NO_MOVE).adding) for p, brokers in there.items())
            repaired.append(Repaired(name, len(waiting), before, wanted, least_in_sync(wanted)))
    return repaired


def spread(there: Assignment, wanted: int, racks: Mapping[int, str | None], load: Counter[int]) -> dict[int, list[int]]:
    """Brokers for every partition with too few copies: its own, then those of other racks, then the least loaded.

    Args:
        racks: Every broker and its rack; None: unknown.
        load: Copies by broker; updated with the copies added here.
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
    """Start a reassignment of partitions to these brokers, without waiting for its end.

    Raises:
        Retryable: no answer, or a temporary error. TopicMismatch: refused; names the partition and the reason.
    """
    topics = [
        (name, [(partition, list(brokers), NO_TAGS) for partition, brokers in moves.items()], NO_TAGS)
        for name, moves in wanted.items()
    ]
    answer = await _ask(admin, AlterPartitionReassignmentsRequest(TIMEOUT_MS, topics, NO_TAGS), "reassign partitions")
    for name, partitions, _ in answer.responses:
        for partition, code, message, _ in partitions:
            check(code, message, f"partition {partition} of topic {name} cannot get more copies")


async def reassignments(admin: Any) -> dict[tuple[str, int], Move]:
    """The running reassignments, by topic and partition. Raises: Retryable."""
    answer = await _ask(admin, ListPartitionReassignmentsRequest(TIMEOUT_MS, None, NO_TAGS), "list reassignments")
    return {
        (name, partition): Move(frozenset(adding), frozenset(removing))
        for name, partitions, _ in answer.topics
        for partition, _, adding, removing, _ in partitions
    }


async def _copied(admin: Any, topic: str, partitions: Set[int], report: Callable[[Copying], None]) -> None:
    """Wait until all of a topic's partitions are copied."""
    while True:
        left = sum(name == topic and p in partitions for name, p in await reassignments(admin))
        report(Copying(topic, len(partitions) - left, len(partitions)))
        if not left:
            return
        await asyncio.sleep(COPY_POLL)


async def _ask(admin: Any, request: Any, what: str) -> Any:
    # aiokafka has these requests, but no methods of its admin client for them. Any broker forwards them.
    answer = await from_broker(admin._send_to_controller(request), what)
    check(answer.error_code, answer.error_message, f"cannot {what}")
    return answer
