"""Kafka for everything but the stream worker: topics, sending, reading, and lag.

With worker/faust_app.py the only code that connects to Kafka. The modules: access (addresses, login), client (names,
limits), topics, partitions, repair, sender, broker and, for reading without a group, log and scan. `bus` implements the
protocols of pipelines.runtime.bus, by topic and stage.
"""

from adapters.kafka.access import KafkaDenied, bootstrap_servers, connection
from adapters.kafka.broker import Broker, broker
from adapters.kafka.client import group_id, partition_of, prefixed
from adapters.kafka.repair import Copying, Repaired, repair_topics
from adapters.kafka.sender import KafkaSender, Outgoing, Sent
from adapters.kafka.topics import Growth, PartitionCounts, add_partitions, ensure_topics, plan_partitions

__all__ = [
    "Broker",
    "Copying",
    "Growth",
    "KafkaDenied",
    "KafkaSender",
    "Outgoing",
    "PartitionCounts",
    "Repaired",
    "Sent",
    "add_partitions",
    "bootstrap_servers",
    "broker",
    "connection",
    "ensure_topics",
    "group_id",
    "partition_of",
    "plan_partitions",
    "prefixed",
    "repair_topics",
]
