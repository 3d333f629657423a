"""The clients for `pagewire status` alone: loading all of `Clients` takes longer than the status itself."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from adapters.elastic.bundle import Elastic
from adapters.kafka.bus import KafkaBus
from pipelines.operate.dead_letters.open_letters import OpenLetters
from pipelines.operate.status import StatusReader
from wiring.addresses import addresses
from wiring.settings import Settings


@asynccontextmanager
async def looking(settings: Settings) -> AsyncIterator[tuple[StatusReader, Elastic]]:
    """Raises: ServiceMissing: no address of Kafka or Elasticsearch."""
    settings = addresses(settings)
    assert settings.elasticsearch
    async with AsyncExitStack() as stack:
        elastic = await stack.enter_async_context(Elastic(settings.elasticsearch, settings))
        bus = KafkaBus(settings)
        letters = OpenLetters(bus)
        stack.push_async_callback(letters.aclose)
        reader = StatusReader(settings.sites, bus, elastic, letters)
        stack.push_async_callback(reader.aclose)
        yield reader, elastic
