"""Reading topics as logs on the real Kafka: what the tail and the reader promise to Asker and ReceiptReader."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from aiokafka.structs import TopicPartition

from adapters.kafka import (
    KafkaSender,
    PartitionCounts,
    add_partitions,
    broker,
    ensure_topics,
    log,
    partition_of,
    plan_partitions,
    prefixed,
)
from adapters.kafka.access import KafkaDown
from adapters.kafka.bus import KafkaBus
from adapters.kafka.log import KafkaLogReader, KafkaLogTail, record_of
from adapters.kafka.scan import KafkaLogScan
from pipelines.runtime.record import Record
from schemas.answer import AnswerEvent, Token
from schemas.topics import ANSWERS, CHANGES, Topic, all_topics
from tests.engine_fixture import Servers
from wiring.settings import Settings

pytestmark = pytest.mark.engine

PARTITIONS = 3


@pytest.fixture
async def settings(engine: Servers) -> AsyncIterator[Settings]:
    """Topics of its own."""
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


@pytest.fixture
async def reader(settings: Settings) -> AsyncIterator[KafkaLogReader]:
    async with KafkaLogReader(settings, ANSWERS) as made:
        yield made


async def say(sender: KafkaSender, request: str, *texts: str) -> None:
    for text in texts:
        await sender.send(ANSWERS, request, AnswerEvent(request_id=request, seq=0, event=Token(text=text)))


def said(records: list[Record]) -> list[str]:
    events = [AnswerEvent.decode(record.value).event for record in records]
    return [event.text for event in events if isinstance(event, Token)]


class Heard:
    """What a tail delivered; waits for as many as a test expects."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self._arrived = asyncio.Event()

    def __call__(self, record: Record) -> None:
        self.records.append(record)
        self._arrived.set()

    async def until(self, count: int) -> list[Record]:
        async with asyncio.timeout(30):
            while len(self.records) < count:
                self._arrived.clear()
                await self._arrived.wait()
        return self.records


def ids(partition: int, count: int) -> list[str]:
    """Request ids that belong into a partition."""
    names = (f"request-{n:04}" for n in range(1000))
    return [name for name in names if partition_of(name.encode(), PARTITIONS) == partition][:count]


async def test_a_tail_hears_what_comes_after_its_start_and_knows_its_place(
    settings: Settings, sender: KafkaSender
) -> None:
    ours, other = ids(1, 2)
    await say(sender, ours, "before")
    heard = Heard()
    tail = KafkaLogTail(settings, ANSWERS, heard)
    await tail.start()
    try:
        assert tail.partition_of(ours) == 1
        assert tail.position(1) == 1
        await say(sender, ours, "a", "b")
        await say(sender, ids(2, 1)[0], "elsewhere")
        await say(sender, other, "c")
        records = await heard.until(4)
        assert said([r for r in records if r.partition == 1]) == ["a", "b", "c"]
        assert [(r.offset, r.key) for r in records if r.partition == 1] == [
            (1, ours.encode()),
            (2, ours.encode()),
            (3, other.encode()),
        ]
        assert tail.position(1) == 4
        assert tail.position(0) == 0
    finally:
        await tail.aclose()


async def test_a_tail_follows_partitions_that_its_topic_gets_later(
    settings: Settings, sender: KafkaSender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "METADATA_AGE", 0.2)
    heard = Heard()
    tail = KafkaLogTail(settings, ANSWERS, heard)
    await tail.start()
    try:
        before, after = (
            ids(0, 1)[0],
            next(n for n in map("request-{:04}".format, range(99)) if partition_of(n.encode(), 4) == 3),
        )
        await say(sender, before, "a")
        await grown(settings, ANSWERS, 4)
        async with KafkaSender(settings) as knows:  # the other one hears of it later
            await say(knows, after, "b")
            await heard.until(2)
            assert tail.partition_of(after) == 3
            await say(knows, after, "c")
            await say(sender, before, "d")
            records = await heard.until(4)
    finally:
        await tail.aclose()
    assert sorted(said(records)) == ["a", "b", "c", "d"]


async def grown(settings: Settings, topic: Topic, count: int) -> None:
    bootstrap = settings.kafka or ""
    growths = await plan_partitions(bootstrap, settings, PartitionCounts.parse([f"{topic.name}={count}"]))
    assert {growth.wanted for growth in growths} == {count}
    await add_partitions(bootstrap, settings, growths)
    assert await plan_partitions(bootstrap, settings, PartitionCounts.parse([f"{topic.name}={count}"])) == []


async def test_what_was_written_of_a_key_before_its_topic_has_got_partitions(
    settings: Settings, sender: KafkaSender, reader: KafkaLogReader
) -> None:
    moves = next(n for n in ids(1, 9) if partition_of(n.encode(), 2 * PARTITIONS) != 1)
    await say(sender, moves, "a")
    await grown(settings, ANSWERS, 2 * PARTITIONS)
    async with KafkaSender(settings) as knows:
        await say(knows, moves, "b")
    async with KafkaLogReader(settings, ANSWERS) as fresh:
        assert sorted(said(await fresh.of_key(moves, 0))) == ["a", "b"]


async def test_a_scan_that_is_open_reads_partitions_that_its_topic_gets(
    settings: Settings, sender: KafkaSender
) -> None:
    async with KafkaLogScan(settings, ANSWERS) as scan:
        seen = await scan.ends()
        await grown(settings, ANSWERS, 2 * PARTITIONS)
        # This producer was never told either: it asks before it says that there is no such partition.
        event = AnswerEvent(request_id="request-0001", seq=0, event=Token(text="new"))
        await sender.send_bytes(ANSWERS, b"request-0001", event.encode(), (), partition=2 * PARTITIONS - 1)
        found = [record async for batch in scan.read(since=seen, until=await scan.ends()) for record in batch]
    assert [(record.partition, said([record])) for record in found] == [(2 * PARTITIONS - 1, ["new"])]


async def test_single_stretches_are_read_with_little_else(settings: Settings, sender: KafkaSender) -> None:
    for number in range(12):
        await sender.send_bytes(CHANGES, b"a", b"%d" % number, (), partition=number % 2)

    async def picked(scan: KafkaLogScan, partition: int, start: int, end: int) -> list[tuple[int, bytes | None]]:
        return [(r.offset, r.value) async for batch in scan.pick(partition, start, end) for r in batch]

    async with KafkaLogScan(settings, CHANGES) as scan:
        assert await picked(scan, 1, 2, 4) == [(2, b"5"), (3, b"7")]
        assert await picked(scan, 0, 5, 6) == [(5, b"10")]
        assert await picked(scan, 1, 0, 1) == [(0, b"1")]
        whole = [record async for batch in scan.read(until=await scan.ends()) for record in batch]
        assert len(whole) == 12
        assert await picked(scan, 0, 1, 2) == [(1, b"2")]


async def test_a_topic_that_is_made_anew_is_another_one(settings: Settings) -> None:
    async with KafkaLogScan(settings, CHANGES) as scan, KafkaLogScan(settings, ANSWERS) as other:
        one = await scan.identity()
        assert one == await scan.identity()
        assert one not in (None, await other.identity())
    admin = AIOKafkaAdminClient(bootstrap_servers=str(settings.kafka))
    await admin.start()
    try:
        await admin.delete_topics([prefixed(settings, CHANGES)])
        while prefixed(settings, CHANGES) in await admin.list_topics():  # noqa: ASYNC110 - brokers hear of it by and by
            await asyncio.sleep(0.05)
    finally:
        await admin.close()
    await ensure_topics(str(settings.kafka), settings)
    async with KafkaLogScan(settings, CHANGES) as scan:
        assert await scan.identity() not in (None, one)


async def test_fewer_partitions_than_the_setting_wants_are_told(settings: Settings) -> None:
    wants = settings.model_copy(update={"partitions": 2 * PARTITIONS})
    async with KafkaBus(wants).view() as view:
        while len(await view.partitions([CHANGES, ANSWERS])) < 2:  # noqa: ASYNC110 - brokers hear of topics by and by
            await asyncio.sleep(0.05)
        [told] = await view.short_of_partitions([CHANGES, ANSWERS])
        assert f"topic {prefixed(settings, CHANGES)} (3 partitions) and 1 more have fewer than the 6" in told
        assert "`pagewire topics --partitions 6`" in told
    async with KafkaBus(settings).view() as view:
        assert await view.short_of_partitions([CHANGES, ANSWERS]) == []


async def test_a_tail_that_has_caught_up_has_heard_all_that_was_confirmed(
    settings: Settings, sender: KafkaSender
) -> None:
    records: list[Record] = []
    tail = KafkaLogTail(settings, ANSWERS, records.append)
    await tail.catch_up("a", 0.0)  # not started
    await tail.start()
    try:
        for number in range(20):
            await say(sender, f"request-{number}", "one", "two")
            await tail.catch_up(f"request-{number}", 10.0)
            assert len(records) == 2 * (number + 1)
    finally:
        await tail.aclose()


async def test_catching_up_is_given_up_in_time(settings: Settings, sender: KafkaSender) -> None:
    tail = KafkaLogTail(settings, ANSWERS, lambda record: None)
    await tail.start()
    try:
        tail._next = dict.fromkeys(tail._next, -1)  # as if nothing were ever delivered
        async with asyncio.timeout(5):
            await tail.catch_up("a", 0.05)
    finally:
        await tail.aclose()


async def test_a_closed_tail_hears_no_more(settings: Settings, sender: KafkaSender) -> None:
    heard, still_heard = Heard(), Heard()
    closed, still_open = KafkaLogTail(settings, ANSWERS, heard), KafkaLogTail(settings, ANSWERS, still_heard)
    await closed.start()
    await still_open.start()
    try:
        await say(sender, ids(0, 1)[0], "before")
        await heard.until(1)
        await closed.aclose()
        await say(sender, ids(0, 1)[0], "after")
        # By when one that is open has heard it, the closed one would have, too.
        assert said(await still_heard.until(2)) == ["before", "after"]
        assert said(heard.records) == ["before"]
    finally:
        await still_open.aclose()
    await KafkaLogTail(settings, ANSWERS, heard).aclose()  # never started


async def test_a_reader_gives_the_stretch_it_is_asked_for(sender: KafkaSender, reader: KafkaLogReader) -> None:
    ours, other = ids(1, 2)
    await say(sender, ours, "0", "1")
    await say(sender, other, "2")
    await say(sender, ours, "3")
    assert said(await reader.read(1, 0)) == ["0", "1", "2", "3"]
    assert said(await reader.read(1, 1, 3)) == ["1", "2"]
    assert said(await reader.read(1, 2, 100)) == ["2", "3"]
    assert await reader.read(1, 4) == []
    assert await reader.read(1, 3, 3) == []
    assert await reader.read(1, 100, 200) == []
    assert await reader.read(0, 0) == []
    [record] = await reader.read(1, 3)
    assert (record.partition, record.offset, record.key, record.fresh) == (1, 3, ours.encode(), False)


async def test_several_may_read_at_once(sender: KafkaSender, reader: KafkaLogReader) -> None:
    await say(sender, ids(1, 1)[0], "a", "b")
    await say(sender, ids(2, 1)[0], "c")
    stretches = await asyncio.gather(*(reader.read(partition, 0) for partition in (1, 2, 1)))
    assert [said(stretch) for stretch in stretches] == [["a", "b"], ["c"], ["a", "b"]]


async def test_a_stretch_whose_beginning_is_deleted_begins_later(
    settings: Settings, sender: KafkaSender, reader: KafkaLogReader
) -> None:
    await say(sender, ids(1, 1)[0], "0", "1", "2")
    admin = AIOKafkaAdminClient(bootstrap_servers=settings.kafka)
    await admin.start()
    try:
        place = TopicPartition(prefixed(settings, ANSWERS), 1)
        await admin.delete_records({place: RecordsToDelete(before_offset=2)})
    finally:
        await admin.close()
    assert said(await reader.read(1, 0)) == ["2"]
    assert await reader.read(1, 0, 2) == []


async def test_a_stretch_that_ends_in_offsets_without_a_record_comes_to_its_end(
    settings: Settings, sender: KafkaSender, reader: KafkaLogReader
) -> None:
    """As after compaction. A transaction's end mark is such an offset, and can be had at once."""
    request = ids(1, 1)[0]
    event = AnswerEvent(request_id=request, seq=0, event=Token(text="0"))
    producer = AIOKafkaProducer(bootstrap_servers=settings.kafka, transactional_id=settings.topic_prefix)
    await producer.start()
    try:
        async with producer.transaction():
            await producer.send_and_wait(prefixed(settings, ANSWERS), event.encode(), key=request.encode(), partition=1)
    finally:
        await producer.stop()
    async with broker(settings) as client:  # the mark is written a moment after the commit is confirmed
        tp = TopicPartition(prefixed(settings, ANSWERS), 1)
        while (await client.ends([tp]))[tp] < 2:  # noqa: ASYNC110 - the broker has no event to wait for
            await asyncio.sleep(0.05)
    assert said(await reader.read(1, 0)) == ["0"]
    assert await reader.read(1, 1, 2) == []
    await say(sender, request, "2")
    assert [(r.offset, said([r])) for r in await reader.read(1, 0)] == [(0, ["0"]), (2, ["2"])]


async def test_what_was_written_of_one_key_since_a_time(sender: KafkaSender, reader: KafkaLogReader) -> None:
    ours, neighbour = ids(1, 2)
    assert await reader.of_key(ours, 0) == []
    await say(sender, ours, "a")
    await say(sender, neighbour, "not ours")
    await say(sender, ours, "b")
    assert said(await reader.of_key(ours, 0)) == ["a", "b"]
    last = (await reader.read(1, 2))[0].timestamp_ms
    assert said(await reader.of_key(ours, last))[-1] == "b"
    assert await reader.of_key(ours, last + 60_000) == []
    assert said(await reader.of_key(ours, 0, last + 60_000)) == ["a", "b"]
    assert await reader.of_key(ours, 0, 1) == []
    assert datetime.now(UTC).timestamp() * 1000 >= last > 0


async def test_many_who_look_for_their_keys_are_served_together(
    settings: Settings, sender: KafkaSender, reader: KafkaLogReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a worker does that starts again: what its records say of where to begin is where it begins."""
    passed: list[Record] = []
    monkeypatch.setattr(log, "record_of", lambda message: passed.append(record_of(message)) or record_of(message))
    read: list[int] = []
    messages = reader._messages

    def counted(partition: int, *stretch: Any) -> Any:
        read.append(partition)
        return messages(partition, *stretch)

    monkeypatch.setattr(reader, "_messages", counted)
    ours = [*ids(1, 20), *ids(2, 20)]
    for name in ours:
        await say(sender, name, "before")
    places = {1: 20, 2: 20}
    for number, name in enumerate(ours):
        await say(sender, name, f"a{number}", f"b{number}")
    await say(sender, ids(1, 21)[-1], "another's")
    # By the time alone nothing would be found; and all partitions were in use long before it.
    later = round(datetime.now(UTC).timestamp() * 1000) + 600_000
    at = [(number, place) for number, place in places.items() for _ in range(20)]
    asking = [reader.of_key(name, later, begins=place) for name, place in zip(ours, at, strict=True)]
    for number, records in enumerate(await asyncio.gather(*asking)):
        assert said(records) == [f"a{number}", f"b{number}"]
    assert sorted(read) == [1, 2]  # once each, for all
    assert len(passed) == 80  # and what is nobody's was let go
    by_time, left = reader.of_key(ours[0], 0), asyncio.create_task(reader.of_key(ours[1], 0))
    await asyncio.sleep(0)
    left.cancel()  # one who leaves does not take the others along
    assert said(await by_time) == ["before", "a0", "b0"]


async def test_where_a_key_begins_says_nothing_of_the_partitions_that_its_topic_got_since(
    settings: Settings, sender: KafkaSender
) -> None:
    moves = next(n for n in ids(1, 9) if partition_of(n.encode(), 2 * PARTITIONS) != 1)
    await say(sender, moves, "a")
    await grown(settings, ANSWERS, 2 * PARTITIONS)
    async with KafkaSender(settings) as knows:
        await say(knows, moves, "b")
    async with KafkaLogReader(settings, ANSWERS) as fresh:
        assert sorted(said(await fresh.of_key(moves, 0, begins=(1, 0)))) == ["a", "b"]
        assert said(await fresh.of_key(moves, 0, begins=(1, 1))) == ["b"]


async def test_what_was_written_of_all_keys_since_a_time(sender: KafkaSender, reader: KafkaLogReader) -> None:
    for number, key in enumerate(ids(1, 5)):
        await say(sender, key, str(number))
    everything = await reader.since(0)
    assert sorted(said(everything)) == ["0", "1", "2", "3", "4"]
    last = max(record.timestamp_ms for record in everything)
    assert "4" in said(await reader.since(last))
    assert await reader.since(last + 60_000) == []


async def test_nobody_waits_for_a_fetch_that_waits_for_news(
    settings: Settings, sender: KafkaSender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapters.kafka.log.POLL_MS", 30_000)  # twice as long as any look may take
    [key] = ids(1, 1)
    heard = Heard()
    tail = KafkaLogTail(settings, ANSWERS, heard)
    async with KafkaLogReader(settings, ANSWERS) as reader:
        await tail.start()
        try:
            await say(sender, key, "a")
            await heard.until(1)
            for _ in range(3):  # the tail waits at the end of the log, as does whatever the reader has left behind
                assert said(await reader.of_key(key, 0)) == ["a"]
                assert said(await reader.since(0)) == ["a"]
                async with asyncio.timeout(10):
                    await tail.catch_up(key, 20)
        finally:
            await tail.aclose()


async def test_without_a_broker_all_say_so_and_leave_nothing_open(settings: Settings) -> None:
    nowhere = settings.model_copy(update={"kafka": "127.0.0.1:9"})
    async with KafkaLogReader(nowhere, ANSWERS) as reader:
        with pytest.raises(KafkaDown, match="reading"):
            await reader.read(0, 0)
        with pytest.raises(KafkaDown, match="reading"):
            await reader.of_key("request-0001", 0)
    with pytest.raises(KafkaDown, match="following"):
        await KafkaLogTail(nowhere, ANSWERS, lambda record: None).start()
