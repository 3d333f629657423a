"""Creates and configures the topics of schemas/topics.py, and names the Kafka ACLs that Pagewire needs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import structlog
from aiokafka.admin import NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import InvalidReplicationFactorError, TopicAlreadyExistsError, for_code

from adapters.kafka.access import denied
from adapters.kafka.client import admin_client, check, from_broker, prefixed
from adapters.kafka.settings import KafkaSettings
from adapters.kafka.shared_tail import share_group
from pipelines.runtime.errors import Retryable, TopicMismatch
from pipelines.runtime.stages import all_groups
from schemas.topics import Topic, all_topics

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
