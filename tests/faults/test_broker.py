"""What the broker can do: die and come back, freeze, refuse. Nothing is lost, no worker needs a restart."""

from __future__ import annotations

import asyncio
import signal

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from adapters.kafka import Outgoing, broker, ensure_topics, prefixed, sender
from adapters.kafka.bus import KafkaBus
from pipelines.operate.dead_letters.open_letters import OpenLetters
from pipelines.runtime.errors import Retryable, TooLarge, TopicMismatch
from schemas.topics import CHANGES, CHUNKS, EMBEDDINGS, MAX_MESSAGE_BYTES, REQUESTS, all_topics
from tests.faults.own_kafka import OwnKafka
from tests.faults.rig import STAGE, Rig, until
from tests.faults.worker import Echo


async def test_a_killed_broker_comes_back(rig: Rig, kafka: OwnKafka) -> None:
    worker = rig.worker(retry_for=600)
    await rig.ready(worker)
    # Two are at work when the broker goes, so they have to send and to commit while it is away.
    await rig.order((1, "gate"), (2, "gate"), *((n, "ok") for n in range(3, 30)))
    await rig.began(1)
    await rig.began(2)
    kafka.kill()
    rig.open_gate()
    await until("the outage is noticed", lambda: "aiokafka" in rig.log(worker))
    kafka.start()
    await kafka.serves()
    await rig.order(*((n, "ok") for n in range(30, 60)))
    await rig.settled()
    assert rig.lost() == set()
    assert await rig.buried() == []
    assert worker.poll() is None


async def test_a_frozen_broker_comes_back(rig: Rig, kafka: OwnKafka) -> None:
    # To be back in its group and to commit takes a busy machine some seconds, which are none of a stall.
    worker = rig.worker(retry_for=600, stall_timeout=10)
    await rig.ready(worker)
    await rig.order((1, "gate"), (2, "ok"))
    await rig.began(1)
    kafka.pause()
    try:
        rig.open_gate()
        # Longer than a stall: the watchdog must not take an outage for one.
        await until("the watchdog cannot look", lambda: "watchdog cannot look" in rig.log(worker))
    finally:
        kafka.resume()
    await rig.settled()
    assert rig.lost() == set()
    assert worker.poll() is None


async def test_a_worker_can_be_stopped_while_the_broker_is_away(rig: Rig, kafka: OwnKafka) -> None:
    worker = rig.worker(drain_timeout=0.5)
    await rig.ready(worker)
    await rig.order((1, "gate"), (2, "ok"))
    await rig.began(1)
    kafka.kill()
    try:
        worker.send_signal(signal.SIGTERM)
        assert await rig.ended(worker) == 0
    finally:
        kafka.start()
        await kafka.serves()
    rig.open_gate()
    rig.worker()
    await rig.settled()
    assert rig.lost() == set()


async def test_while_the_broker_is_away_only_the_first_waits(
    rig: Rig, kafka: OwnKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def taken() -> bool:
        try:
            await rig.sender.send_bytes(CHANGES, b"k", b"3", ())
        except Retryable:
            return False
        return True

    await rig.sender.send_bytes(CHANGES, b"k", b"0", ())
    kafka.kill()
    try:
        monkeypatch.setattr(sender, "SEND_TIMEOUT", 600.0)
        monkeypatch.setattr(sender, "NO_BROKER_TIMEOUT", 1.0)
        async with asyncio.timeout(60):
            with pytest.raises(Retryable):
                await rig.sender.send_bytes(CHANGES, b"k", b"1", ())
        monkeypatch.setattr(sender, "NO_BROKER_TIMEOUT", 600.0)
        monkeypatch.setattr(sender, "DOWN_TIMEOUT", 0.0)
        async with asyncio.timeout(60):
            with pytest.raises(Retryable):
                await rig.sender.send_bytes(CHANGES, b"k", b"2", ())
    finally:
        kafka.start()
        await kafka.serves()
    # Without patience nothing would ever be taken again: what was refused is confirmed late, and brings it back.
    await until("messages are taken again", taken)
    assert [m.value for m in await rig.messages(CHANGES)][:2] == [b"0", b"1"]


async def test_a_refused_message_does_not_break_the_sender(rig: Rig) -> None:
    await rig.sender.send_bytes(CHANGES, b"k", b"1", ())
    # A compacted topic refuses messages without a key. After it aiokafka's idempotent producer would get
    # OutOfOrderSequenceNumber on this partition for ever.
    for _ in range(8):
        with pytest.raises(Retryable):
            await rig.sender.send_bytes(CHANGES, None, b"refused", ())
    await asyncio.gather(*(rig.sender.send_bytes(CHANGES, b"k", b"2", ()) for _ in range(20)))
    with pytest.raises(TooLarge, match="8388608"):
        await rig.sender.send_bytes(CHANGES, b"k", b"x" * (MAX_MESSAGE_BYTES + 2**21), ())
    assert [m.value for m in await rig.messages(CHANGES)] == [b"1"] + [b"2"] * 20


async def test_parts_of_a_page_go_where_the_page_goes(rig: Rig) -> None:
    pages = [f"town:de:{n}" for n in range(8)]
    own = await rig.sender.send_many(Outgoing(CHUNKS, page, Echo(id=0)) for page in pages)
    parts = await rig.sender.send_many(
        Outgoing(EMBEDDINGS, f"{page}#{part}", Echo(id=part), partition_key=page) for page in pages for part in range(3)
    )
    assert [part.partition for part in parts] == [place.partition for place in own for _ in range(3)]
    assert {place.partition for place in own} == {0, 1}
    sent = await rig.messages(EMBEDDINGS)
    for page in pages:
        assert [Echo.decode(m.value).id for m in sent if m.key.decode().startswith(f"{page}#")] == [0, 1, 2]


async def test_topics_are_created_checked_and_corrected(rig: Rig) -> None:
    settings, bootstrap = rig.settings, rig.settings.kafka or ""
    assert await ensure_topics(bootstrap, settings) == []  # the rig has created them
    name = prefixed(settings, REQUESTS)
    await _configure(bootstrap, name, {"max.message.bytes": "1000", "cleanup.policy": "delete", "flush.ms": "77777"})
    await ensure_topics(bootstrap, settings)
    # A foreign setting stays.
    await _configured(bootstrap, name, REQUESTS.config | {"flush.ms": "77777"})
    # Fewer partitions than wanted stop nobody.
    assert await ensure_topics(bootstrap, settings.model_copy(update={"partitions": 3})) == []
    await _configure(bootstrap, name, {"cleanup.policy": "compact"})
    with pytest.raises(TopicMismatch, match=r"cleanup\.policy=compact"):
        await ensure_topics(bootstrap, settings)
    async with broker(settings) as client:
        found = await client.topics()
    assert {prefixed(settings, topic) for topic in all_topics()} <= set(found)


async def test_lag_members_and_open_letters_are_told_by_the_broker(rig: Rig) -> None:
    await rig.order((1, "ok"), (2, "permanent"), (3, "ok"))
    async with broker(rig.settings) as client:
        before = await client.behind(rig.group, rig.partitions(CHANGES)), await client.members(rig.group)
        rig.worker()
        await rig.settled()
        after = await client.behind(rig.group, rig.partitions(CHANGES)), await client.members(rig.group)
    assert (sum(before[0].values()), before[1]) == (3, 0)
    assert (sum(after[0].values()), after[1]) == (0, 1)
    letters = OpenLetters(KafkaBus(rig.settings))
    try:
        await letters.look()
    finally:
        await letters.aclose()
    assert [(c.topic, c.stage, c.code, c.count) for c in letters.counts()] == [(CHANGES.name, STAGE, "refused", 1)]


async def _configure(bootstrap: str, topic: str, config: dict[str, str]) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, config)])
    finally:
        await admin.close()
    await _configured(bootstrap, topic, config)


async def _configured(bootstrap: str, topic: str, config: dict[str, str]) -> None:
    """Wait until the broker has heard of it from its controller."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:

        async def heard() -> bool:
            (answer,) = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
            own = 1  # source: set on the topic
            return {entry[0]: entry[1] for entry in answer.resources[0][4] if entry[3] == own} == config

        await until(f"{topic} has {config}", heard)
    finally:
        await admin.close()
