"""A broker on loopback with the part of Kafka's protocol that producers use. It fails as a test scripts.

It has a leader and one follower: with `acks=1` a batch is confirmed once the leader has it, with `acks=all` once the
follower has it too. A batch that an idempotent producer sends again is in the log once. The tests' real Kafka is a
single broker, which cannot show either.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from io import BytesIO
from typing import Any

from aiokafka.protocol.admin import ApiVersionResponse_v0
from aiokafka.protocol.metadata import MetadataRequest_v1, MetadataResponse_v1
from aiokafka.protocol.produce import ProduceRequest_v3, ProduceResponse_v3
from aiokafka.protocol.transaction import InitProducerIdResponse_v0
from aiokafka.record.memory_records import MemoryRecords

PRODUCE, METADATA, API_VERSIONS, INIT_PRODUCER_ID = 0, 3, 18, 22
VERSIONS = [(PRODUCE, 3, 3), (METADATA, 1, 1), (API_VERSIONS, 0, 0), (INIT_PRODUCER_ID, 0, 0)]
NODE = 1
ALL_REPLICAS = -1


class HangUp(Exception):
    """Closes the connection instead of an answer."""


async def confirm() -> None:
    """Answer at once."""


async def hang_up() -> None:
    """Lose the connection before the answer."""
    raise HangUp


async def fall_silent() -> None:
    """Keep the connection and never answer."""
    await asyncio.Event().wait()


class ScriptedKafka:
    """`log`: what the leader has, of all topics in order. Each topic has one partition."""

    def __init__(self) -> None:
        self.address = ""
        self.log: list[bytes | None] = []
        self.produced = 0  # requests
        self.leader_has_it = asyncio.Event()
        self.follower_has_it = asyncio.Event()
        self.follower_has_it.set()
        self.answers: list[Callable[[], Awaitable[None]]] = []  # to the next produce requests; then `confirm`
        self._producers = 0
        self._seen: dict[tuple[int, int], int] = {}  # (producer, sequence) -> offset

    @classmethod
    @asynccontextmanager
    async def started(cls) -> AsyncIterator[ScriptedKafka]:
        broker = cls()
        connections: set[asyncio.Task[None]] = set()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task
            connections.add(task)
            try:
                await broker._serve(reader, writer)
            except (HangUp, asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
                pass
            finally:
                writer.close()

        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        broker.address = "{}:{}".format(*server.sockets[0].getsockname())
        try:
            yield broker
        finally:
            server.close()
            for task in connections:
                task.cancel()
            await asyncio.gather(*connections)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            [size] = struct.unpack(">i", await reader.readexactly(4))
            request = BytesIO(await reader.readexactly(size))
            api, _, correlation, name_length = struct.unpack(">hhih", request.read(10))
            request.read(name_length)
            answer = struct.pack(">i", correlation) + await self._answer(api, request)
            writer.write(struct.pack(">i", len(answer)) + answer)
            await writer.drain()

    async def _answer(self, api: int, request: BytesIO) -> bytes:
        match api:
            case 18:
                return ApiVersionResponse_v0(0, VERSIONS).encode()
            case 3:
                topics = [
                    (0, topic, False, [(0, 0, NODE, [NODE], [NODE])])
                    for topic in MetadataRequest_v1.decode(request).topics or []
                ]
                host, port = self.address.split(":")
                return MetadataResponse_v1([(NODE, host, int(port), None)], NODE, topics).encode()
            case 22:
                self._producers += 1
                return InitProducerIdResponse_v0(0, 0, self._producers, 0).encode()
            case 0:
                return await self._produce(ProduceRequest_v3.decode(request))
        raise AssertionError(f"not in VERSIONS: {api}")

    async def _produce(self, request: Any) -> bytes:
        self.produced += 1
        offsets = [(topic, [(0, 0, self._append(data), -1) for _, data in parts]) for topic, parts in request.topics]
        self.leader_has_it.set()
        if request.required_acks == ALL_REPLICAS:
            await self.follower_has_it.wait()
        await (self.answers.pop(0) if self.answers else confirm)()
        return ProduceResponse_v3(offsets, 0).encode()

    def _append(self, data: bytes) -> int:
        records = MemoryRecords(data)
        first = len(self.log)
        while records.has_next():
            batch = records.next_batch()
            sequence = (batch.producer_id, batch.base_sequence)
            if batch.producer_id >= 0 and sequence in self._seen:
                return self._seen[sequence]
            self._seen[sequence] = first
            self.log += [record.value for record in batch]
        return first
