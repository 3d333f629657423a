"""Adds partitions to topics in use: makes a plan of the changes, then applies it.

    --partitions 12 ─▶ plan: cms.changes 4 ─▶ 12, ... ─▶ dead letters' topics, then theirs ─▶ every partition is led

Kafka can add partitions but not remove them. With another number most keys move to another partition, and their
earlier records stay in the old one. Nothing here relies on a key's partition: a page's revisions decide.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aiokafka.admin import NewPartitions
from aiokafka.errors import InvalidPartitionsError, for_code

from adapters.kafka.client import admin_client, check, from_broker, prefixed
from adapters.kafka.settings import MAX_PARTITIONS, KafkaSettings
from pipelines.runtime.errors import Retryable, WrongUse
from schemas.topics import DLQ_SUFFIX, Topic, all_topics

LED_LIMIT = 30.0  # seconds until every new partition has a leader
LED_POLL = 0.2  # seconds


@dataclass(frozen=True)
class Growth:
    """A topic that gets more partitions."""

    topic: str  # the broker's name
    partitions: int  # now
    wanted: int


@dataclass(frozen=True)
class PartitionCounts:
    """The wanted number of partitions, for all topics or by topic."""

    every: int | None = None
    own: Mapping[str, int] = field(default_factory=dict)  # by topic, without the prefix

    @classmethod
    def parse(cls, given: Sequence[str], prefix: str = "") -> PartitionCounts:
        """Parse `12` and `TOPIC=12`. Raises: WrongUse."""
        every: int | None = None
        own: dict[str, int] = {}
        names = {topic.name for topic in all_topics()}
        for text in given:
            name, separator, number = text.rpartition("=")
            if not number.isascii() or not number.isdecimal() or not 1 <= int(number) <= MAX_PARTITIONS:
                raise WrongUse(f"--partitions {text}: a number from 1 to {MAX_PARTITIONS}, or TOPIC=NUMBER")
            if not separator:
                if every is not None:
                    raise WrongUse("--partitions: one number for all topics; the others as TOPIC=NUMBER")
                every = int(number)
                continue
            name = name if name in names else name.removeprefix(prefix)
            if name not in names:
                raise WrongUse(f"--partitions {text}: no such topic; there are {', '.join(sorted(names))}")
            own[name] = int(number)
        return cls(every, own)

    def of(self, topic: Topic) -> int | None:
        """The topic's wanted number; None: unchanged.

        A topic of dead letters gets as many as its topic, since parked messages keep their partition's number.
        """
        return self.own.get(topic.name) or self.own.get(topic.name.removesuffix(DLQ_SUFFIX)) or self.every


def plan(wanted: PartitionCounts, there: Mapping[Topic, int], settings: KafkaSettings) -> list[Growth]:
    """The changes; topics of dead letters come first.

    Args:
        there: Topics and their numbers of partitions.

    Raises:
        WrongUse: a topic has more partitions than wanted.
    """
    more = {topic: count for topic, count in there.items() if (number := wanted.of(topic)) and count > number}
    found = [
        Growth(prefixed(settings, topic), count, number)
        for topic, count in there.items()
        if (number := wanted.of(topic)) and count < number
    ]
    named = {topic: count for topic, count in more.items() if topic.name in wanted.own}
    # One number for all topics leaves those with more partitions alone; a topic's own number must not be too low.
    if too_many := named or (more if not found and len(more) == len(there) else {}):
        topic, count = max(too_many.items(), key=lambda item: item[1])
        raise WrongUse(
            f"topic {prefixed(settings, topic)} has {count} partitions, {wanted.of(topic)} are fewer: Kafka cannot "
            "take partitions away, for their messages would go with them. More than needed cost little; if it must "
            "be, choose another PAGEWIRE_TOPIC_PREFIX and bring the pages in again"
        )
    return sorted(found, key=lambda growth: (not growth.topic.endswith(DLQ_SUFFIX), growth.topic))


async def plan_partitions(bootstrap: str, settings: KafkaSettings, wanted: PartitionCounts) -> list[Growth]:
    """The changes. Raises: WrongUse, as `plan`. Retryable: the broker does not answer."""
    async with admin_client(bootstrap, settings) as admin:
        found = await _leaders(admin)
    there = {topic: len(found[name]) for topic in all_topics() if (name := prefixed(settings, topic)) in found}
    return plan(wanted, there, settings)


async def add_partitions(bootstrap: str, settings: KafkaSettings, growths: Iterable[Growth]) -> None:
    """Add partitions, and wait until each new one has a leader. Safe to repeat after an interruption.

    Raises:
        KafkaDenied, Retryable. TopicMismatch: Kafka refuses; the message has its reason.
    """
    async with admin_client(bootstrap, settings) as admin:
        for growth in growths:
            await _grow(admin, growth)


async def _leaders(admin: Any) -> dict[str, list[int]]:
    """By topic the leader of each partition; -1: none."""
    described = await from_broker(admin.describe_topics(None), "list topics")
    return {topic["topic"]: [p["leader"] for p in topic["partitions"]] for topic in described}


async def _grow(admin: Any, growth: Growth) -> None:
    answer = await from_broker(
        admin.create_partitions({growth.topic: NewPartitions(growth.wanted)}), f"add partitions to {growth.topic}"
    )
    for _, code, *message in answer.topic_errors:
        invalid = for_code(code) is InvalidPartitionsError
        if invalid and len((await _leaders(admin))[growth.topic]) >= growth.wanted:
            continue  # another process has added them
        check(code, " ".join(filter(None, message)), f"topic {growth.topic} cannot get partitions")
    end = time.monotonic() + LED_LIMIT
    while True:
        leaders = (await _leaders(admin)).get(growth.topic, [])
        if len(leaders) >= growth.wanted and -1 not in leaders:
            return
        if time.monotonic() > end:
            raise Retryable(f"topic {growth.topic} has its partitions, but not all are led yet; is a broker away?")
        await asyncio.sleep(LED_POLL)
