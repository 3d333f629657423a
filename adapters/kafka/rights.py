"""The Kafka ACLs that Pagewire needs, derived from the maps of topics and stages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from adapters.kafka.client import prefixed
from adapters.kafka.settings import KafkaSettings
from adapters.kafka.shared_tail import share_group
from pipelines.runtime.stages import all_groups
from schemas.topics import all_topics

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
