"""A topic's id: Kafka gives one to each topic it creates (KIP-516, Kafka 2.8), so a recreated topic has another id.

aiokafka requests metadata in a version without ids, so this module defines the request: Metadata, version 10.
https://kafka.apache.org/protocol#The_Messages_Metadata
"""

from __future__ import annotations

from io import BytesIO
from typing import Any
from uuid import UUID

from aiokafka.errors import IncompatibleBrokerVersion, for_code
from aiokafka.protocol.abstract import AbstractType
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Boolean, CompactArray, CompactString, Int16, Int32, Schema, TaggedFields

NO_TAGS: dict[int, bytes] = {}
NAMED = bytes(16)  # no id: the request has the topic's name


class _Id(AbstractType[bytes]):  # type: ignore[misc]
    """16 bytes."""

    @classmethod
    def encode(cls, value: bytes) -> bytes:
        return value

    @classmethod
    def decode(cls, data: BytesIO) -> bytes:
        return data.read(16)


class _Answer(Response):  # type: ignore[misc]
    API_KEY = 3
    API_VERSION = 10
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "brokers",
            CompactArray(
                ("node_id", Int32),
                ("host", CompactString("utf-8")),
                ("port", Int32),
                ("rack", CompactString("utf-8")),
                ("tags", TaggedFields),
            ),
        ),
        ("cluster_id", CompactString("utf-8")),
        ("controller_id", Int32),
        (
            "topics",
            CompactArray(
                ("error_code", Int16),
                ("name", CompactString("utf-8")),
                ("topic_id", _Id),
                ("is_internal", Boolean),
                (
                    "partitions",
                    CompactArray(
                        ("error_code", Int16),
                        ("partition", Int32),
                        ("leader", Int32),
                        ("leader_epoch", Int32),
                        ("replicas", CompactArray(Int32)),
                        ("isr", CompactArray(Int32)),
                        ("offline", CompactArray(Int32)),
                        ("tags", TaggedFields),
                    ),
                ),
                ("topic_authorized_operations", Int32),
                ("tags", TaggedFields),
            ),
        ),
        ("cluster_authorized_operations", Int32),
        ("tags", TaggedFields),
    )


class _Question(RequestStruct):  # type: ignore[misc]
    FLEXIBLE_VERSION = True
    API_KEY = 3
    API_VERSION = 10
    RESPONSE_TYPE = _Answer
    SCHEMA = Schema(
        ("topics", CompactArray(("topic_id", _Id), ("name", CompactString("utf-8")), ("tags", TaggedFields))),
        ("allow_auto_topic_creation", Boolean),
        ("include_cluster_authorized_operations", Boolean),
        ("include_topic_authorized_operations", Boolean),
        ("tags", TaggedFields),
    )


class TopicIdRequest(Request[_Question]):  # type: ignore[misc]
    """The metadata of one topic, by its name."""

    API_KEY = 3

    def __init__(self, topic: str) -> None:
        self._topic = topic

    def build(self, request_struct_class: type[_Question]) -> _Question:
        return request_struct_class([(NAMED, self._topic, NO_TAGS)], False, False, False, NO_TAGS)


async def topic_id(client: Any, topic: str) -> str | None:
    """The id; None: the broker is older than ids.

    Args:
        client: aiokafka's, connected.

    Raises:
        KafkaError.
    """
    node = client.get_random_node()
    try:
        answer = await client.send(node, TopicIdRequest(topic))
    except (NotImplementedError, IncompatibleBrokerVersion):  # aiokafka's errors where the broker lacks the version
        return None
    [(code, _, id, *_)] = answer.topics
    if code:
        raise for_code(code)
    return str(UUID(bytes=id)) if id != NAMED else None
