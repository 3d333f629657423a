"""The rights that we need at Kafka, from the map of topics and the map of stages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from adapters.kafka.client import prefixed
from adapters.kafka.settings import KafkaSettings
from adapters.kafka.share import share_group
from pipelines.runtime.stages import all_groups
from schemas.topics import all_topics

# Who needs it: gateway and workers at all times; `pagewire topics`, once, with `--repair`, and with `--partitions`.
Use = Literal["run", "create", "repair", "partitions"]


@dataclass(frozen=True)
class KafkaRight:
    """What somebody must be allowed to do with something; operations as Kafka's ACLs call them."""

    use: Use
    resource: Literal["topic", "group", "cluster"]
    name: str
    pattern: Literal["literal", "prefixed"]
    operations: tuple[str, ...]


def kafka_rights(settings: KafkaSettings) -> Iterator[KafkaRight]:
    """All of them. With a topic prefix two lines are enough for all topics and groups."""
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
    # A reassignment is asked of the cluster; Kafka knows no right of a topic for it.
    yield KafkaRight("repair", "cluster", "kafka-cluster", "literal", ("Alter", "Describe"))
    for name in topics:
        yield KafkaRight("partitions", "topic", name, pattern, ("Alter",))
