"""A server that takes a connection and says nothing is a service that is away: nobody waits for it for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing

import pytest

from adapters.elastic import bundle, inventory
from adapters.elastic import client as elastic_client
from adapters.elastic.bundle import Elastic
from adapters.elastic.indexes import IndexInfo
from adapters.elastic.inventory import ElasticInventory
from adapters.embedders import openai_api
from adapters.embedders.openai_api import OpenAIEmbedder
from adapters.kafka import KafkaSender, broker, ensure_topics, log
from adapters.kafka import client as kafka_client
from adapters.kafka.log import KafkaLogReader, KafkaLogTail
from adapters.kafka.scan import KafkaLogScan
from pipelines.runtime.errors import Retryable
from schemas.topics import CHANGES
from wiring.settings import Settings

LIMIT = 0.2  # seconds, in place of each limit of ours
INDEX = IndexInfo("pagewire-town-000001", "town", "lite", "lite-1", 4, "fixed-20-0")


@pytest.fixture
async def address(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    """Where nobody answers."""
    for module, names in {
        elastic_client: ["REQUEST_TIMEOUT"],
        inventory: ["REQUEST_TIMEOUT"],
        bundle: ["PING_TIMEOUT"],
        kafka_client: ["REQUEST_TIMEOUT", "ANSWER_TIMEOUT", "CLOSE_TIMEOUT"],
        log: ["READ_TIMEOUT"],
        openai_api: ["QUESTION_TIMEOUT", "PAGES_TIMEOUT"],
    }.items():
        for name in names:
            monkeypatch.setattr(module, name, LIMIT)
    over = asyncio.Event()

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await over.wait()
        writer.close()

    server = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    async with server:
        yield "{}:{}".format(*server.sockets[0].getsockname())
        over.set()


async def search(address: str) -> None:
    async with Elastic(f"http://{address}", Settings()) as elastic:
        await elastic.indexes.now("town")


async def ping(address: str) -> None:
    async with Elastic(f"http://{address}", Settings()) as elastic:
        await elastic.ping()


async def count(address: str) -> None:
    async with Elastic(f"http://{address}", Settings()) as elastic:
        await ElasticInventory(elastic.es, elastic.writer, INDEX).count()


async def send(address: str) -> None:
    async with KafkaSender(Settings(kafka=address)):
        raise AssertionError("started without a broker")


async def topics(address: str) -> None:
    await ensure_topics(address, Settings())


async def ends(address: str) -> None:
    async with broker(Settings(kafka=address)):
        raise AssertionError("connected to no broker")


async def read(address: str) -> None:
    async with KafkaLogReader(Settings(kafka=address), CHANGES) as reader:
        await reader.read(0, 0)


async def read_of_key(address: str) -> None:
    async with KafkaLogReader(Settings(kafka=address), CHANGES) as reader:
        await reader.of_key("town:en:fees", 0)


async def follow(address: str) -> None:
    async with aclosing(KafkaLogTail(Settings(kafka=address), CHANGES, lambda record: None)) as tail:
        await tail.start()


async def scan(address: str) -> None:
    async with KafkaLogScan(Settings(kafka=address), CHANGES):
        raise AssertionError("connected to no broker")


async def embed(address: str) -> None:
    async with aclosing(OpenAIEmbedder("m", base_url=f"http://{address}/v1", api_key=None, dims=4)) as embedder:
        await embedder.passages(["pool"])


@pytest.mark.parametrize(
    "ask",
    [search, ping, count, send, topics, ends, read, read_of_key, follow, scan, embed],
    ids=lambda ask: ask.__name__,
)
async def test_who_asks_is_told_in_time(address: str, ask: Callable[[str], Awaitable[None]]) -> None:
    async with asyncio.timeout(5):
        with pytest.raises(Retryable):
            await ask(address)


async def test_a_visitors_question_does_not_wait_as_long_as_a_page(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai_api, "PAGES_TIMEOUT", 60.0)
    async with aclosing(OpenAIEmbedder("m", base_url=f"http://{address}/v1", api_key=None, dims=4)) as embedder:
        async with asyncio.timeout(5):
            with pytest.raises(Retryable):
                await embedder.query("pool")
