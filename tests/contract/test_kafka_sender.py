"""What a confirmed message is: one that all replicas have, once, whatever became of the answers on the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from adapters.kafka import KafkaSender, sender
from adapters.kafka.sender import Outgoing
from pipelines.runtime.errors import TooLarge
from schemas.answer import AnswerEvent, Token
from schemas.topics import ANSWERS
from tests.scripted_kafka import ScriptedKafka, fall_silent, hang_up
from wiring.settings import Settings


def said(text: str) -> Outgoing:
    return Outgoing(ANSWERS, "request-1", AnswerEvent(request_id="request-1", seq=0, event=Token(text=text)))


def texts(broker: ScriptedKafka) -> list[str]:
    events = [AnswerEvent.decode(value).event for value in broker.log]
    return [event.text for event in events if isinstance(event, Token)]


@pytest.fixture
async def broker() -> AsyncIterator[ScriptedKafka]:
    async with ScriptedKafka.started() as broker:
        yield broker


@pytest.fixture
async def kafka(broker: ScriptedKafka) -> AsyncIterator[KafkaSender]:
    async with KafkaSender(Settings(kafka=broker.address)) as kafka:
        yield kafka


async def test_nothing_is_confirmed_that_only_the_leader_has(broker: ScriptedKafka, kafka: KafkaSender) -> None:
    """A leader that dies takes it along; by then its sender would have acknowledged what it came from."""
    broker.follower_has_it.clear()
    sending = asyncio.create_task(kafka.send_many([said("a")]))
    await broker.leader_has_it.wait()
    done, _ = await asyncio.wait((sending,), timeout=0.2)  # the answer to acks=1 would be here at once
    assert not done
    broker.follower_has_it.set()
    async with asyncio.timeout(10):
        [sent] = await sending
    assert (sent.offset, texts(broker)) == (0, ["a"])


@pytest.mark.parametrize("trouble", [hang_up, fall_silent])
async def test_a_message_whose_confirmation_is_lost_is_in_the_log_once(
    broker: ScriptedKafka, trouble: Callable[[], Awaitable[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client asks again, on a connection that lives; the broker knows the message by its number."""
    monkeypatch.setattr(sender, "REQUEST_TIMEOUT", 0.3)
    broker.answers = [trouble, trouble]
    async with KafkaSender(Settings(kafka=broker.address)) as kafka, asyncio.timeout(10):
        [first] = await kafka.send_many([said("a")])
        [second] = await kafka.send_many([said("b")])
    assert (first.offset, second.offset) == (0, 1)
    assert texts(broker) == ["a", "b"]
    assert not broker.answers


async def test_messages_of_one_key_are_one_request_in_their_order(broker: ScriptedKafka, kafka: KafkaSender) -> None:
    await kafka.send_all(ANSWERS, "request-1", [said("before").message])  # the topic's partitions are known now
    before = broker.produced
    await kafka.send_all(ANSWERS, "request-1", [said(text).message for text in "abcdefgh"])
    assert texts(broker) == ["before", *"abcdefgh"]
    assert broker.produced == before + 1


async def test_what_follows_a_message_that_is_refused_is_not_sent(broker: ScriptedKafka, kafka: KafkaSender) -> None:
    """The messages before it are confirmed by then: a later attempt finds them in the log."""
    large = said("x" * sender.MAX_RECORD_BYTES)
    broker.follower_has_it.clear()
    sending = asyncio.create_task(kafka.send_many([said("a"), large, said("b")]))
    await broker.leader_has_it.wait()
    assert not (await asyncio.wait((sending,), timeout=0.2))[0]
    broker.follower_has_it.set()
    with pytest.raises(TooLarge):
        await sending
    assert texts(broker) == ["a"]
