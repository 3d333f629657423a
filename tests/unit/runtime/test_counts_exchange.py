"""Counts reach other processes, whatever becomes of the broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from pipelines.runtime.counts import CountsExchange, SharedCounts
from pipelines.runtime.errors import Retryable
from pipelines.runtime.record import Record
from schemas.base import Message
from schemas.topics import BUDGETS, Topic
from tests import skipping_time

NOW = 1_000_000.0


class Broker:
    """A topic that all processes share."""

    def __init__(self) -> None:
        self.away = False
        self.records: list[Record] = []
        self.followers: list[Callable[[Record], None]] = []

    def append(self, value: bytes) -> None:
        self.records.append(Record("t", 0, len(self.records), b"k", value, timestamp_ms=round(NOW * 1000)))
        for deliver in self.followers:
            deliver(self.records[-1])

    def check(self) -> None:
        if self.away:
            raise Retryable("no broker")


class Bus:
    """What an exchange has of it: producer, tail and reader."""

    def __init__(self, broker: Broker, deliver: Callable[[Record], None] | None = None) -> None:
        self._broker = broker
        self._deliver = deliver

    async def start(self) -> None:
        self._broker.check()
        if self._deliver is not None:
            self._broker.followers.append(self._deliver)

    async def aclose(self) -> None:
        if self._deliver in self._broker.followers:
            self._broker.followers.remove(self._deliver)

    async def since(self, since_ms: int) -> list[Record]:
        self._broker.check()
        return [record for record in self._broker.records if record.timestamp_ms >= since_ms]

    async def send(self, topic: Topic, key: str, message: Message, **_: Any) -> None:
        self._broker.check()
        self._broker.append(message.encode())


def process(broker: Broker) -> tuple[SharedCounts, CountsExchange]:
    counts = SharedCounts(86_400, lambda: NOW)
    bus: Any = Bus(broker)
    make_tail: Any = lambda deliver: Bus(broker, deliver)  # noqa: E731
    exchange = CountsExchange(counts, BUDGETS, bus, make_tail, bus)
    exchange.start()
    return counts, exchange


def test_others_hear_of_counts_and_who_starts_later_reads_them_back() -> None:
    async def scenario() -> list[int]:
        broker = Broker()
        one, first = process(broker)
        other, second = process(broker)
        one.add("questions town", 3)
        await asyncio.sleep(2)
        heard = other.of("questions town")
        other.add("questions town")
        await first.aclose()
        await second.aclose()  # its last count is said
        later, third = process(broker)
        await asyncio.sleep(2)
        await third.aclose()
        return [heard, later.of("questions town"), len(broker.followers)]

    assert skipping_time.run(scenario()) == [3, 4, 0]


def test_without_a_broker_each_counts_for_itself_and_tells_when_there_is_one() -> None:
    async def scenario() -> list[int]:
        broker = Broker()
        broker.away = True
        one, first = process(broker)
        other, second = process(broker)
        one.add("a")
        await asyncio.sleep(60)
        alone = other.of("a")
        broker.away = False
        await asyncio.sleep(5)
        together = other.of("a")
        broker.away = True
        one.add("a")
        await asyncio.sleep(60)
        broker.away = False
        await asyncio.sleep(5)
        found = [alone, together, other.of("a")]
        await first.aclose()
        await second.aclose()
        return found

    assert skipping_time.run(scenario()) == [0, 1, 2]


def test_what_is_no_message_of_ours_is_passed_over() -> None:
    async def scenario() -> int:
        broker = Broker()
        broker.append(b"{")
        one, first = process(broker)
        other, second = process(broker)
        await asyncio.sleep(1)
        broker.append(b"not json")
        one.add("a")
        await asyncio.sleep(2)
        await first.aclose()
        await second.aclose()
        return other.of("a")

    assert skipping_time.run(scenario()) == 1
