"""Waiting for the broker: whoever is cancelled ends, whatever else happens at that moment."""

from __future__ import annotations

import asyncio

import pytest
from aiokafka.errors import KafkaConnectionError

from adapters.kafka import client as kafka_client
from adapters.kafka.client import close, from_broker, stop
from pipelines.runtime.errors import Retryable


async def test_a_cancellation_in_the_moment_of_the_answer_is_not_forgotten() -> None:
    broker: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    asking = asyncio.create_task(from_broker(broker, "ask"))
    await asyncio.sleep(0)
    broker.set_result("here")
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking


async def test_a_client_that_swallows_a_cancellation_while_it_closes_does_not_keep_us() -> None:
    async def swallows() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return

    closing = asyncio.create_task(close(swallows()))
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing


async def test_no_answer_in_time_and_an_error_are_said_in_our_words(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails() -> None:
        raise KafkaConnectionError("away")

    with pytest.raises(Retryable, match="cannot ask: KafkaConnectionError"):
        await from_broker(fails(), "ask")
    monkeypatch.setattr(kafka_client, "ANSWER_TIMEOUT", 0.01)
    with pytest.raises(Retryable, match="cannot ask: TimeoutError"):
        await from_broker(asyncio.sleep(60), "ask")
    monkeypatch.setattr(kafka_client, "CLOSE_TIMEOUT", 0.01)
    await close(asyncio.sleep(60))


async def test_a_consumer_that_raises_the_cancellation_of_its_own_fetches_is_stopped_all_the_same() -> None:
    closed: list[str] = []

    class Connections:
        async def close(self) -> None:
            closed.append("connections")

    class Consumer:
        _client = Connections()

        async def stop(self) -> None:
            fetching = asyncio.create_task(asyncio.sleep(60))
            fetching.cancel()
            await fetching  # as aiokafka's fetcher does it

    await stop(Consumer())  # type: ignore[arg-type]
    assert closed == ["connections"]
