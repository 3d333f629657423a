"""Checks whether a server is ready.

A restarted server listens for seconds before it is ready: Kafka's broker is not registered yet, or Elasticsearch's
shards are not recovered. Clients would get errors then.
"""

from __future__ import annotations

import asyncio

import httpx
from aiokafka.conn import create_conn
from aiokafka.errors import KafkaError
from aiokafka.protocol.metadata import MetadataRequest

from infra.running import HOST

PROBE_TIMEOUT = 2.0  # seconds
NO_LEADER = -1


async def kafka_serves(port: int) -> bool:
    """Whether Kafka answers a metadata request, names a broker, and every partition has a leader."""
    try:
        async with asyncio.timeout(PROBE_TIMEOUT):
            connection = await create_conn(HOST, port, request_timeout_ms=int(PROBE_TIMEOUT * 1000))
            try:
                metadata = await connection.send(MetadataRequest(None, allow_auto_topic_creation=False))
            finally:
                connection.close()
    except (OSError, KafkaError, TimeoutError):
        return False
    leaders = [partition[2] for topic in metadata.topics for partition in topic[-1]]
    return bool(metadata.brokers) and NO_LEADER not in leaders


async def elasticsearch_serves(port: int) -> bool:
    """Whether Elasticsearch has a master and every primary shard is allocated (health yellow or green)."""
    try:
        # trust_env=False: a configured proxy cannot reach our loopback.
        async with httpx.AsyncClient(timeout=PROBE_TIMEOUT, trust_env=False) as client:
            answer = await client.get(f"http://{HOST}:{port}/_cluster/health")
    except httpx.HTTPError:
        return False
    return answer.status_code == httpx.codes.OK and answer.json()["status"] in ("yellow", "green")
