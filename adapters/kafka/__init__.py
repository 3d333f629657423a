"""Kafka, seen by everything but the stream worker: topics, sending, and what the broker says of lag.

Together with worker/faust_app.py the only code that talks to Kafka. This is its face; the parts are
access (where to, as whom), client (names, limits), topics, partitions, repair, sender, broker and, for reading without
a group, log and scan. bus gives all of it by topic and stage, as pipelines.runtime.bus asks for it.
"""

from adapters.kafka.access import KafkaDenied, bootstrap_servers, connection
from adapters.kafka.broker import Broker, GroupLag, broker
from adapters.kafka.client import group_id, partition_of, prefixed
from adapters.kafka.partitions import Growth, Wanted, add_partitions, plan_partitions
from adapters.kafka.repair import Copying, Repaired, repair_topics
from adapters.kafka.sender import KafkaSender, Outgoing, Sent
from adapters.kafka.topics import ensure_topics

__all__ = [
    "Broker",
    "Copying",
    "GroupLag",
    "Growth",
    "KafkaDenied",
    "KafkaSender",
    "Outgoing",
    "Repaired",
    "Sent",
    "Wanted",
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
