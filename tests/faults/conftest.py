"""One Kafka for all of these tests, and per test its own topics."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from adapters.kafka import KafkaSender
from tests.faults.own_kafka import OwnKafka
from tests.faults.rig import Rig
from wiring.settings import Settings


@pytest.fixture(scope="package")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnKafka]:
    server = OwnKafka(tmp_path_factory.mktemp("kafka"))
    server.start()
    try:
        asyncio.run(server.serves())
        yield server
    finally:
        server.close()


@pytest.fixture
async def rig(kafka: OwnKafka, tmp_path: Path) -> AsyncIterator[Rig]:
    settings = Settings(kafka=kafka.bootstrap, topic_prefix=f"t{uuid4().hex[:8]}.", partitions=2)
    rig = Rig(settings, tmp_path, KafkaSender(settings))
    await rig.start()
    try:
        yield rig
    finally:
        await rig.close()
