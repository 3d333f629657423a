"""A gateway's tail on the real Kafka: it reads its own share, and what somebody wants besides."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, aclosing
from uuid import uuid4

import pytest
from aiokafka.admin import AIOKafkaAdminClient

from adapters.kafka import (
    KafkaSender,
    PartitionCounts,
    add_partitions,
    ensure_topics,
    log,
    partition_of,
    plan_partitions,
    prefixed,
)
from adapters.kafka import shared_tail as module
from adapters.kafka.access import KafkaDown
from adapters.kafka.log import KafkaLogReader
from adapters.kafka.shared_tail import KafkaSharedTail
from pipelines.conversations.ask import Asker, Followed
from pipelines.runtime.record import Record
from schemas.answer import AnswerEvent, Done, Token
from schemas.topics import ANSWERS, all_topics
from tests.asking import question
from tests.engine_fixture import Servers
from wiring.settings import Settings

pytestmark = pytest.mark.engine

PARTITIONS = 4


@pytest.fixture
async def settings(engine: Servers) -> AsyncIterator[Settings]:
    made = Settings(kafka=engine.kafka, topic_prefix=f"t{uuid4().hex[:10]}.", partitions=PARTITIONS)
    await ensure_topics(engine.kafka, made)
    yield made
    admin = AIOKafkaAdminClient(bootstrap_servers=engine.kafka)
    await admin.start()
    try:
        await admin.delete_topics([prefixed(made, topic) for topic in all_topics()])
    finally:
        await admin.close()


@pytest.fixture
async def sender(settings: Settings) -> AsyncIterator[KafkaSender]:
    async with KafkaSender(settings) as made:
        yield made


def request(partition: int, partitions: int = PARTITIONS) -> str:
    """An id that belongs into a partition."""
    names = (f"request-{n:04}" for n in range(1000))
    return next(name for name in names if partition_of(name.encode(), partitions) == partition)


async def say(sender: KafkaSender, request_id: str, *texts: str) -> None:
    for seq, text in enumerate(texts):
        await sender.send(ANSWERS, request_id, AnswerEvent(request_id=request_id, seq=seq, event=Token(text=text)))


def said(records: list[Record]) -> list[str]:
    events = [AnswerEvent.decode(record.value).event for record in records]
    return [event.text for event in events if isinstance(event, Token)]


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not true():  # noqa: ASYNC110  # nothing announces it
            await asyncio.sleep(0.02)


async def test_it_reads_what_is_wanted_and_nothing_else(
    settings: Settings, sender: KafkaSender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SETTLING", 0.0)
    monkeypatch.setattr(module, "LINGER", 0.0)
    records: list[Record] = []
    tail = KafkaSharedTail(settings, ANSWERS, records.append)
    await tail.start()
    async with aclosing(tail):
        await until(lambda: not tail._next)
        with pytest.raises(KafkaDown):
            tail.position(1)
        await say(sender, request(1), "nobody wants it")
        async with tail.following({1, 2}):
            assert (tail.position(1), tail.position(2)) == (1, 0)
            async with tail.following({1}):
                await say(sender, request(3), "not ours")
                await say(sender, request(1), "a")
                await say(sender, request(2), "b")
                await until(lambda: len(records) == 2)
            await say(sender, request(1), "c")  # somebody else still wants it
            await until(lambda: len(records) == 3)
        await until(lambda: not tail._next)
        await say(sender, request(1), "nobody wants it any more")
        async with tail.following({1, 3}):
            await say(sender, request(1), "d")
            await say(sender, request(3), "e")
            await until(lambda: len(records) == 5)
        with pytest.raises(KafkaDown):
            async with tail.following({PARTITIONS}):
                pass
    assert sorted(said(records)) == ["a", "b", "c", "d", "e"]


async def test_gateways_share_the_partitions_out_and_take_over_from_who_leaves(
    settings: Settings, sender: KafkaSender
) -> None:
    async with AsyncExitStack() as stack:
        tails = [KafkaSharedTail(settings, ANSWERS, lambda record: None, shared=True) for _ in range(2)]
        for tail in tails:
            await tail.start()
        leaver = await stack.enter_async_context(AsyncExitStack())
        await leaver.enter_async_context(aclosing(tails[1]))
        await stack.enter_async_context(aclosing(tails[0]))
        await until(lambda: len(tails[0].own) == len(tails[1].own) == PARTITIONS / 2)
        await until(lambda: not tails[0].own & tails[1].own)
        asker = Asker(sender, KafkaLogReader(settings, ANSWERS), lambda deliver: tails[0])
        assert {tails[0].partition_of(asker.new_id()) for _ in range(50)} == tails[0].own
        await leaver.aclose()
        await until(lambda: tails[0].own == frozenset(range(PARTITIONS)))


async def test_without_the_right_to_share_one_partition_is_ours(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SETTLING", 0.0)
    tail = KafkaSharedTail(settings, ANSWERS, lambda record: None, shared=True)
    monkeypatch.setattr(tail._share, "start", lambda: None)  # as if the broker never said anything
    await tail.start()
    async with aclosing(tail):
        await until(lambda: tail.own)
        assert len(tail.own) == 1


async def test_an_answer_goes_on_at_another_gateway_where_the_topic_has_grown(
    settings: Settings, sender: KafkaSender, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second gateway has read none of it before, and its worker hears of the new partitions when it likes."""
    monkeypatch.setattr(module, "SETTLING", 0.0)
    monkeypatch.setattr(module, "LINGER", 0.0)
    monkeypatch.setattr(log, "METADATA_AGE", 0.2)
    async with AsyncExitStack() as stack:
        tails: list[KafkaSharedTail] = []

        async def gateway() -> Asker:
            def make(deliver: Callable[[Record], None]) -> KafkaSharedTail:
                tails.append(KafkaSharedTail(settings, ANSWERS, deliver))
                return tails[-1]

            asker = Asker(sender, await stack.enter_async_context(KafkaLogReader(settings, ANSWERS)), make)
            await asker.start()
            stack.push_async_callback(asker.aclose)
            return asker

        moves = request(PARTITIONS + 2, 2 * PARTITIONS)
        asked = question().model_copy(update={"request_id": moves})
        first, second = await gateway(), await gateway()
        await until(lambda: not tails[1]._next)
        events = await stack.enter_async_context(aclosing(first.ask(asked)))
        await anext(events)
        await say(sender, asked.request_id, "a", "b")
        seen = [await anext(events) for _ in range(2)]
        await events.aclose()
        growths = await plan_partitions(
            settings.kafka or "", settings, PartitionCounts.parse([f"{ANSWERS.name}={2 * PARTITIONS}"])
        )
        await add_partitions(settings.kafka or "", settings, growths)
        await until(lambda: tails[1].partition_of(request(PARTITIONS, 2 * PARTITIONS)) == PARTITIONS)
        rest = await stack.enter_async_context(aclosing(second.resume("town", asked.request_id, seen[0].position)))
        assert text(await anext(rest)) == "b"
        done = AnswerEvent(request_id=asked.request_id, seq=2, event=Done())
        await sender.send(ANSWERS, asked.request_id, done)
        async with asyncio.timeout(60):
            assert [followed.event.event async for followed in rest] == [Done()]


def text(followed: Followed) -> str:
    event = followed.event.event
    return event.text if isinstance(event, Token) else event.type
