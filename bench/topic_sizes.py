"""How much disk the topics take, by the broker's own account (KIP-113, DescribeLogDirs)."""

from __future__ import annotations

from typing import Any

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Array, Boolean, Int16, Int32, Int64, Schema, String

from adapters.kafka import connection, prefixed
from schemas.topics import TOPICS, Topic
from wiring.settings import Settings

API_KEY = 35


class _Answer(Response):  # type: ignore[misc]
    API_KEY = API_KEY
    API_VERSION = 1
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "directories",
            Array(
                ("error_code", Int16),
                ("path", String("utf-8")),
                (
                    "topics",
                    Array(
                        ("name", String("utf-8")),
                        (
                            "partitions",
                            Array(("partition", Int32), ("size", Int64), ("lag", Int64), ("future", Boolean)),
                        ),
                    ),
                ),
            ),
        ),
    )


class _Question(RequestStruct):  # type: ignore[misc]
    API_KEY = API_KEY
    API_VERSION = 1
    RESPONSE_TYPE = _Answer
    SCHEMA = Schema(("topics", Array(("name", String("utf-8")), ("partitions", Array(Int32)))))


class _DescribeLogDirs(Request[_Question]):  # type: ignore[misc]
    API_KEY = API_KEY

    def build(self, request_struct_class: type[_Question]) -> _Question:
        return request_struct_class(None)  # all topics


async def topic_sizes(settings: Settings) -> dict[Topic, int]:
    """Bytes on disk of each topic, summed over partitions and over the brokers that hold them."""
    admin: Any = AIOKafkaAdminClient(**connection(settings))
    await admin.start()
    sizes = dict.fromkeys(TOPICS, 0)
    names = {prefixed(settings, topic): topic for topic in TOPICS}
    try:
        for broker in (await admin.describe_cluster())["brokers"]:
            answer = await admin._send_request_to_node(broker["node_id"], _DescribeLogDirs())
            for directory in answer.to_object()["directories"]:
                for topic in directory["topics"]:
                    if topic["name"] in names:
                        sizes[names[topic["name"]]] += sum(partition["size"] for partition in topic["partitions"])
    finally:
        await admin.close()
    return sizes
