"""Creates and configures the topics of schemas/topics.py, and names the Kafka ACLs that Pagewire needs. Adds partitions
to topics in use: makes a plan of the changes, then applies it.

    --partitions 12 ─▶ plan: cms.changes 4 ─▶ 12, ... ─▶ dead letters' topics, then theirs ─▶ every partition is led

Kafka can add partitions but not remove them. With another number most keys move to another partition, and their
earlier records stay in the old one. Nothing here relies on a key's partition: a page's revisions decide.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import structlog
from aiokafka.admin import NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import InvalidPartitionsError, InvalidReplicationFactorError, TopicAlreadyExistsError, for_code

from adapters.kafka.access import denied
from adapters.kafka.client import admin_client, check, from_broker, prefixed
from adapters.kafka.settings import MAX_PARTITIONS, KafkaSettings
from adapters.kafka.shared_tail import share_group
from pipelines.runtime.errors import Retryable, TopicMismatch, WrongUse
from pipelines.runtime.stage import all_groups
from schemas.topics import DLQ_SUFFIX, Topic, all_topics

log = structlog.get_logger(__name__)

MIN_IN_SYNC = "min.insync.replicas"
METADATA_LIMIT = 10.0  # seconds until all brokers know a new topic
METADATA_POLL = 0.2  # seconds
TOPIC_CONFIG_SOURCE = 1  # DescribeConfigs: set on the topic itself, not a broker default


async def ensure_topics(
    bootstrap: str, settings: KafkaSettings, *, copied: Mapping[str, int] | None = None
) -> list[str]:
    """Create missing topics of schemas/topics.py, and correct settings that differ.

    Args:
        copied: New numbers of copies by topic, which brokers may not know yet.

    Returns:
        The names of the topics created.

    Raises:
        Retryable: the broker does not answer. TopicMismatch: names the topic and what is wrong with it.
    """
    async with admin_client(bootstrap, settings) as admin:
        wanted = {prefixed(settings, topic): topic for topic in all_topics()}
        described = await from_broker(admin.describe_topics(None), "list topics")
        existing = {topic["topic"]: len(topic["partitions"]) for topic in described}
        copies = {topic["topic"]: min(len(p["replicas"]) for p in topic["partitions"]) for topic in described}
        copies |= copied or {}
        missing = [name for name in wanted if name not in existing]
        created = await _create(admin, settings, {name: wanted[name] for name in missing})
        checked = {name: topic for name, topic in wanted.items() if name not in created}
        # Fewer partitions than configured are no error: everything works, with less parallelism.
        if few := [name for name in checked if existing.get(name, settings.partitions) < settings.partitions]:
            log.warning("topics have fewer partitions than the setting wants", topics=few, wanted=settings.partitions)
        await _check_configs(admin, checked, {name: copies.get(name, 1) for name in checked})
    return created


async def _create(admin: Any, settings: KafkaSettings, topics: Mapping[str, Topic]) -> list[str]:
    if not topics:
        return []
    durable = {MIN_IN_SYNC: str(least_in_sync(settings.replication))}
    new = [
        NewTopic(name, settings.partitions, settings.replication, topic_configs=topic.config | durable)
        for name, topic in topics.items()
    ]
    outcome = await from_broker(admin.create_topics(new), "create topics")
    created = []
    for name, code, *message in outcome.topic_errors:
        if code == 0:
            created.append(name)
        elif for_code(code) is not TopicAlreadyExistsError:  # another process may have created it
            what, said = f"topic {name} cannot be created", " ".join(filter(None, message))
            check(code, said, what, retried=InvalidReplicationFactorError)  # a starting cluster has too few brokers
    return created


def least_in_sync(copies: int) -> int:
    """The min.insync.replicas for so many copies: one broker may be down."""
    return max(1, copies - 1)


async def _configs(admin: Any, topics: Iterable[str]) -> list[Any]:
    """The topics' settings. Raises: Retryable."""
    end = time.monotonic() + METADATA_LIMIT
    while True:
        resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in topics]
        described: list[Any] = await from_broker(admin.describe_configs(resources), "read topic settings")
        failed = [(name, code) for part in described for code, _, _, name, _ in part.resources if code]
        if not failed:
            return described
        for name, code in failed:
            if missing_right := denied(code, f"settings of topic {name} cannot be read"):
                raise missing_right
        if time.monotonic() > end:
            name, code = failed[0]
            raise Retryable(f"settings of topic {name} cannot be read: {for_code(code).__name__}")
        # The asked broker may not know yet a topic that another process has just created.
        await asyncio.sleep(METADATA_POLL)


async def _check_configs(admin: Any, topics: Mapping[str, Topic], copies: Mapping[str, int]) -> None:
    if not topics:
        return
    changes = []
    differs: dict[str, str] = {}
    for part in await _configs(admin, topics):
        for _, _, _, name, entries in part.resources:
            have = {entry[0]: entry[1] for entry in entries}
            wrong = {key: value for key, value in topics[name].config.items() if have.get(key) != value}
            # From the existing copies, not the configured number: with fewer copies than this, every write would fail.
            if int(have.get(MIN_IN_SYNC) or 1) < (least := least_in_sync(copies[name])):
                wrong[MIN_IN_SYNC] = str(least)
            if not wrong:
                continue
            if "cleanup.policy" in wrong:
                raise TopicMismatch(
                    f"topic {name} has cleanup.policy={have.get('cleanup.policy')}, must be "
                    f"{wrong['cleanup.policy']}: somebody else's topic? Choose another topic_prefix, "
                    f"or change the topic by hand"
                )
            differs[name] = ", ".join(f"{key} must be {value}" for key, value in wrong.items())
            # AlterConfigs replaces all settings of the topic, so settings by others are sent as well.
            own = {entry[0]: entry[1] for entry in entries if entry[3] == TOPIC_CONFIG_SOURCE}
            changes.append(ConfigResource(ConfigResourceType.TOPIC, name, own | wrong))
            log.info("topic settings corrected", topic=name, **{k.replace(".", "_"): v for k, v in wrong.items()})
    if changes:
        for part in await from_broker(admin.alter_configs(changes), "change topic settings"):
            for error_code, message, _, name in part.resources:
                what = f"settings of topic {name} cannot be changed ({differs.get(name)})"
                if missing_right := denied(error_code, what):
                    raise missing_right
                if error_code:
                    raise TopicMismatch(f"{what}: {message}")


# `run`: gateway and workers; the others `pagewire topics`: alone, with `--repair`, with `--partitions`.
Use = Literal["run", "create", "repair", "partitions"]


@dataclass(frozen=True)
class KafkaRight:
    """Operations on a resource, by the names of Kafka's ACLs."""

    use: Use
    resource: Literal["topic", "group", "cluster"]
    name: str
    pattern: Literal["literal", "prefixed"]
    operations: tuple[str, ...]


def kafka_rights(settings: KafkaSettings) -> Iterator[KafkaRight]:
    """All needed rights. A topic prefix covers all topics and groups with two rights."""
    topics = sorted(prefixed(settings, topic) for topic in all_topics())
    stages = (group.name(settings.topic_prefix) for group, _ in all_groups())
    groups = sorted([*stages, share_group(settings)])
    pattern: Literal["literal", "prefixed"] = "literal"
    if settings.topic_prefix:
        topics, groups, pattern = [settings.topic_prefix], [settings.topic_prefix], "prefixed"
    for name in topics:
        yield KafkaRight("run", "topic", name, pattern, ("Describe", "DescribeConfigs", "Read", "Write"))
    for name in groups:
        yield KafkaRight("run", "group", name, pattern, ("Describe", "Read"))
    for name in topics:
        yield KafkaRight("create", "topic", name, pattern, ("AlterConfigs", "Create"))
    # Kafka has a right for reassignments on the cluster only, not on topics.
    yield KafkaRight("repair", "cluster", "kafka-cluster", "literal", ("Alter", "Describe"))
    for name in topics:
        yield KafkaRight("partitions", "topic", name, pattern, ("Alter",))


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
