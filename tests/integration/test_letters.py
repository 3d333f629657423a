"""Dead letters on the real Kafka: buried by a real Guard, then listed, shown, edited, redriven and dropped."""

from __future__ import annotations

import asyncio
import json
import weakref
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from aiokafka.structs import TopicPartition

from adapters.kafka import KafkaSender, Outgoing, ensure_topics, prefixed
from adapters.kafka.bus import KafkaBus
from adapters.kafka.log import KafkaLogReader
from adapters.kafka.scan import KafkaLogScan
from pipelines.operate.dead_letters.letters import LetterHandled, Letters, LetterUnreadable, UnknownLetter
from pipelines.operate.dead_letters.open_letters import OpenLetters
from pipelines.operate.dead_letters.view import BadValue
from pipelines.runtime.dead_letters import Mark, describe, from_headers, mark_headers, original_headers, to_headers
from pipelines.runtime.errors import Permanent, Retryable
from pipelines.runtime.record import Headers, Record
from pipelines.runtime.retry import RetryPolicy
from pipelines.runtime.stage import Sender, Stage
from schemas.head import Head
from schemas.keys import part_key
from schemas.letters import DeadLetterCounts, DeadLetterFilter, DeadLetterSummary
from schemas.page import PageChange, PageDocument
from schemas.topics import CHANGES, EMBEDDINGS, RETRIEVED, Topic, all_topics, dead_letter_topic
from tests import making
from tests.engine_fixture import Servers
from tests.making import NOON, parts_of
from wiring.settings import Settings
from worker.guard import Guard
from worker.in_flight import RecordInFlight

pytestmark = pytest.mark.engine

PARTITIONS = 3
EVERYTHING = DeadLetterFilter()


class KnownHeads:
    """What the index is made to show."""

    def __init__(self) -> None:
        self.heads_by_key: dict[str, Head] = {}
        self.away = False

    async def heads(self, site: str, page_keys: Iterable[str]) -> Mapping[str, Head]:
        if self.away:
            raise Retryable("Elasticsearch does not answer")
        return {key: self.heads_by_key[key] for key in page_keys if key in self.heads_by_key}


class DyingBus:
    """Kafka, to a process that dies after so many messages."""

    def __init__(self, sender: KafkaSender, messages: int) -> None:
        self._sender = sender
        self._left = messages

    async def send_bytes(
        self, topic: Topic, key: bytes | None, value: bytes | None, headers: Headers, *, partition: int | None = None
    ) -> None:
        if not self._left:
            raise Retryable("dead")
        self._left -= 1
        await self._sender.send_bytes(topic, key, value, headers, partition=partition)


@dataclass
class Desk:
    """One test's topics, with an operator's tools."""

    settings: Settings
    sender: KafkaSender
    letters: Letters
    changes: KafkaLogReader
    heads: KnownHeads = field(default_factory=KnownHeads)

    async def records(self, topic: Topic) -> list[Record]:
        """All of a topic, by partition and offset."""
        async with KafkaLogScan(self.settings, topic) as scan:
            found = [record async for batch in scan.read(until=await scan.ends()) for record in batch]
        return sorted(found, key=lambda record: (record.partition, record.offset))

    async def work_on(self, topic: Topic, *, since: int = 0, error: Exception | None = None) -> list[Record]:
        """Give a topic's records to a stage that decodes them, or fails each with `error`, in a real Guard."""

        async def handler(record: Record, sender: Sender) -> None:
            if error is not None:
                raise error
            PageChange.decode(record.value)

        guard = Guard(
            Stage("chunk", {topic: handler}, patient=False), topic, handler, self.sender, RetryPolicy(2, 0.0), 10.0
        )
        records = [record for record in await self.records(topic) if record.offset >= since]
        for record in records:
            await guard(RecordInFlight(record, record.key or b""))
        return records

    async def bury(self, source: Topic, key: bytes | None, value: bytes | None, **letter: Any) -> None:
        """Write a letter as the guard does; `letter` changes its fields."""
        record = Record(prefixed(self.settings, source), 1, 5, key, value, (("own", b"1"),), 7)
        made = describe(record, "chunk", Permanent("no"), 1, NOON)
        await self.sender.send_bytes(
            dead_letter_topic(source), key, value, to_headers(record.headers, replace(made, **letter))
        )

    async def all(self) -> dict[str, DeadLetterSummary]:
        """Every letter by its key, handled ones too."""
        return {letter.key or "": letter for letter in (await self.letters.list(EVERYTHING, handled=True)).letters}

    async def id(self) -> str:
        """Of the one open letter."""
        (letter,) = (await self.letters.list(EVERYTHING)).letters
        return letter.id


@pytest.fixture
async def desk(engine: Servers) -> AsyncIterator[Desk]:
    settings = Settings(kafka=engine.kafka, topic_prefix=f"t{uuid4().hex[:10]}.", partitions=PARTITIONS)
    await ensure_topics(engine.kafka, settings)
    open_letters, heads = OpenLetters(KafkaBus(settings)), KnownHeads()
    async with KafkaSender(settings) as sender, KafkaLogReader(settings, CHANGES) as changes:
        yield Desk(settings, sender, Letters(KafkaBus(settings), sender, heads, changes, open_letters), changes, heads)
    await open_letters.aclose()
    admin = AIOKafkaAdminClient(bootstrap_servers=engine.kafka)
    await admin.start()
    try:
        await admin.delete_topics([prefixed(settings, topic) for topic in all_topics()])
    finally:
        await admin.close()


def change(page_id: str, content: str = "<p>One.</p>", revision: int = 1, site: str = "town") -> PageChange:
    page = PageDocument(id=page_id, lang="en", title=f"Page {page_id}", content=content)
    return PageChange(
        op="upsert",
        site=site,
        lang="en",
        page_id=page_id,
        revision=revision,
        accepted_at=NOON,
        source="push",
        page=page,
    )


async def test_a_poisoned_page_is_listed_edited_and_worked_on_while_its_neighbours_never_noticed(desk: Desk) -> None:
    good, poisoned = change("good"), change("bad", "<p>Corrected.</p>", 2)
    headers: Headers = (("cms", b"\xff"), ("cms", None))
    await desk.sender.send(CHANGES, good.page_key, good)
    await desk.sender.send_bytes(CHANGES, poisoned.page_key.encode(), b'{"v": 1, "op": "upsert", broken', headers)
    await desk.work_on(CHANGES)
    assert [record.key for record in await desk.records(dead_letter_topic(CHANGES))] == [b"town:en:bad"]

    (letter,) = (await desk.letters.list(EVERYTHING)).letters
    assert (letter.stage, letter.topic, letter.code, letter.state) == ("chunk", "cms.changes", "bad-message", "open")
    assert (letter.site, letter.lang, letter.page_id, letter.attempts, letter.redrives) == ("town", "en", "bad", 1, 0)

    shown = await desk.letters.show(letter.id)
    assert (shown.value, shown.text) == (None, '{"v": 1, "op": "upsert", broken')
    assert "not a PageChange v1" in (shown.problem or "")
    assert [(h.name, h.value) for h in shown.headers[:2]] == [("cms", "0xff"), ("cms", None)]
    assert shown.diff
    assert "no last good revision" in shown.diff.note

    edited = await desk.letters.redrive(letter.id, poisoned.encode())
    assert edited.state == "edited"
    again = (await desk.records(CHANGES))[-1]
    (source,) = [r for r in await desk.records(CHANGES) if r.value == b'{"v": 1, "op": "upsert", broken']
    assert (again.partition, again.key, again.value) == (source.partition, source.key, poisoned.encode())
    assert original_headers(again.headers) == headers
    assert (await desk.letters.list(EVERYTHING)).total == 0
    assert (await desk.all())["town:en:bad"].state == "edited"
    await desk.work_on(CHANGES, since=again.offset)
    assert (await desk.letters.list(EVERYTHING)).total == 0


async def test_a_letter_that_fails_again_tells_its_whole_history(desk: Desk) -> None:
    await desk.sender.send(CHANGES, "town:en:a", change("a"))
    await desk.work_on(CHANGES, error=ZeroDivisionError("first"))
    first = (await desk.letters.list(EVERYTHING)).letters[0]
    for round in (1, 2):
        await desk.letters.redrive(await desk.id())
        await desk.work_on(CHANGES, since=round, error=Permanent("again"))
    (last,) = (await desk.letters.list(EVERYTHING)).letters
    assert (first.attempts, last.attempts, last.redrives) == (2, 4, 2)
    assert last.first_failed_at == first.first_failed_at
    assert last.last_failed_at > first.last_failed_at
    assert (last.code, last.message) == ("refused", "again")
    assert (await desk.letters.list(EVERYTHING, handled=True)).total == 3


async def test_a_part_goes_back_to_the_partition_of_its_page(desk: Desk) -> None:
    parts = [
        part for n in range(6) for part in parts_of(making.change(page_id=f"p{n}"), {"content": ["a", "b"]}, per_part=1)
    ]
    outgoing = [Outgoing(EMBEDDINGS, part_key(p.change.page_key, p.part), p, p.change.page_key) for p in parts]
    await desk.sender.send_many(outgoing)
    before = {record.key: record.partition for record in await desk.work_on(EMBEDDINGS, error=Permanent("no"))}
    last = [counts async for counts in desk.letters.redrive_all(EVERYTHING)][-1]
    assert last == DeadLetterCounts(handled=12)
    records = await desk.records(EMBEDDINGS)
    assert len(records) == 24
    assert all(record.partition == before[record.key] for record in records)
    assert [record.lane for record in sorted(records, key=lambda record: record.timestamp_ms)[12:]] == ["bulk"] * 12
    assert (await desk.letters.list(EVERYTHING)).total == 0


async def test_dying_between_message_and_mark_leaves_the_letter_open(desk: Desk) -> None:
    await desk.sender.send(CHANGES, "town:en:a", change("a"))
    await desk.work_on(CHANGES, error=Permanent("no"))
    id = await desk.id()
    open_letters = OpenLetters(KafkaBus(desk.settings))
    dying = Letters(KafkaBus(desk.settings), DyingBus(desk.sender, 1), desk.heads, desk.changes, open_letters)
    with pytest.raises(Retryable, match="dead"):
        await dying.redrive(id)
    assert await desk.id() == id
    dead = Letters(KafkaBus(desk.settings), DyingBus(desk.sender, 0), desk.heads, desk.changes, open_letters)
    with pytest.raises(Retryable, match="dead"):
        async for _ in dead.redrive_all(EVERYTHING):
            pass
    await open_letters.aclose()
    assert (await desk.letters.redrive(id)).state == "redriven"
    messages = [record.value for record in await desk.records(CHANGES)]
    assert messages == [change("a").encode()] * 3  # the stages take it twice
    with pytest.raises(LetterHandled, match=r"was redriven at \d{4}"):
        await desk.letters.redrive(id)
    with pytest.raises(LetterHandled):
        await desk.letters.drop(id)


async def test_what_is_no_dead_letter_is_listed_and_can_only_be_dropped(desk: Desk) -> None:
    buried = dead_letter_topic(CHANGES)
    now = datetime.now(UTC)
    await desk.sender.send_bytes(buried, b"plain", b"\x00\xff" * 500, ())
    await desk.sender.send_bytes(buried, None, None, (("pagewire.errors.stage", b"chunk"),))
    await desk.sender.send_bytes(buried, b"mark", b"", mark_headers(Mark(10_000, "dropped", now)))
    await desk.bury(CHANGES, b"elsewhere", b"x", topic="cms.changes")  # the prefix is missing
    await desk.bury(CHANGES, b"town:en:far", change("far").encode(), partition=99)
    await desk.bury(CHANGES, None, change("keyless").encode(), partition=0)
    await desk.bury(CHANGES, b"town:en:fine", change("fine").encode(), partition=0)
    listed = await desk.letters.list(EVERYTHING)
    assert listed.total == 7
    unreadable = [letter for letter in listed.letters if letter.code == "unreadable"]
    assert {letter.key for letter in unreadable} == {"plain", None, "mark", "elsewhere"}
    assert all(letter.stage is None and letter.attempts is None for letter in unreadable)
    for letter in listed.letters:
        shown = await desk.letters.show(letter.id)
        assert shown.letter == letter
        if letter.key != "town:en:fine":
            with pytest.raises(LetterUnreadable, match="only be dropped"):
                await desk.letters.redrive(letter.id)
    plain = await desk.letters.show(next(letter.id for letter in unreadable if letter.key == "plain"))
    assert plain.text == "0x" + "00ff" * 128 + "... 1,000 bytes"
    counts = [counts async for counts in desk.letters.redrive_all(EVERYTHING)][-1]
    assert counts == DeadLetterCounts(handled=1, refused=6)
    counts = [counts async for counts in desk.letters.drop_all(DeadLetterFilter(code="unreadable"))][-1]
    assert counts == DeadLetterCounts(handled=4)
    assert (await desk.letters.list(EVERYTHING)).total == 2


async def test_filters_choose_and_the_newest_come_first(desk: Desk) -> None:
    await desk.bury(CHANGES, b"town:en:a", b"1", code="x", last_failed_at=NOON)
    await desk.bury(CHANGES, b"town:de:a", b"2", last_failed_at=NOON + timedelta(hours=1))
    await desk.bury(CHANGES, b"lake:en:b%2Fc", b"3", code="x", last_failed_at=NOON + timedelta(hours=2))
    await desk.bury(EMBEDDINGS, b"lake:en:b%2Fc#3", b"4", stage="index", last_failed_at=NOON + timedelta(hours=3))
    await desk.bury(RETRIEVED, b"conversation", b"5", stage="answer", last_failed_at=NOON + timedelta(hours=4))

    async def sizes(limit: int = 100, **wanted: object) -> tuple[int, list[str | None]]:
        found = await desk.letters.list(DeadLetterFilter.model_validate(wanted), limit)
        return found.total, [letter.key for letter in found.letters]

    lake = ["lake:en:b%2Fc#3", "lake:en:b%2Fc"]
    assert await sizes() == (5, ["conversation", *lake, "town:de:a", "town:en:a"])
    assert await sizes(2) == (5, ["conversation", lake[0]])
    assert await sizes(0) == (5, [])
    assert await sizes(site="lake") == (2, lake)
    assert await sizes(page="b/c") == (2, lake)
    assert await sizes(page="b/c", stage="index") == (1, lake[:1])
    assert await sizes(topic="ingest.embeddings") == (1, lake[:1])
    assert await sizes(code="x") == (2, [lake[1], "town:en:a"])
    assert await sizes(since=NOON + timedelta(hours=3)) == (2, ["conversation", lake[0]])
    assert await sizes(since=NOON + timedelta(hours=5)) == (0, [])
    counts = {(c.topic, c.stage, c.code): c.count for c in await desk.letters.open_counts()}
    assert counts == {
        ("cms.changes", "chunk", "x"): 2,
        ("cms.changes", "chunk", "refused"): 1,
        ("ingest.embeddings", "index", "refused"): 1,
        ("query.retrieved", "answer", "refused"): 1,
    }
    async for _ in desk.letters.drop_all(DeadLetterFilter(code="x")):
        pass
    assert await sizes() == (3, ["conversation", lake[0], "town:de:a"])
    handled = (await desk.letters.list(DeadLetterFilter(code="x"), 1, handled=True)).letters
    assert [(letter.key, letter.state) for letter in handled] == [(lake[1], "dropped")]
    assert sum(c.count for c in await desk.letters.open_counts()) == 3


async def test_the_diff_goes_from_the_revision_that_the_index_shows(desk: Desk) -> None:
    before = change("a", "<p>Monday.</p><p>Tuesday.</p><p>Same.</p>", 3)
    after = change("a", "<p>Monday.</p><p>Friday.</p><p>Same.</p>", 4)
    (sent,) = await desk.sender.send_many([Outgoing(CHANGES, before.page_key, before)])
    ref = making.change(page_id="a").model_copy(
        update={"revision": 3, "partition": sent.partition, "offset": sent.offset}
    )
    head = Head(change=ref, state="live", settled_at=NOON)
    desk.heads.heads_by_key["town:en:a"] = head
    await desk.bury(CHANGES, b"town:en:a", after.encode(), partition=sent.partition)
    id = await desk.id()

    diff = (await desk.letters.show(id)).diff
    assert diff
    assert (diff.last_good, diff.revision, diff.note) == (3, 4, "")
    assert diff.lines[:2] == ("--- revision 3 (in the index)", "+++ revision 4 (dead letter)")
    assert [line for line in diff.lines[3:] if line[0] != " "] == ["-<p>Tuesday.</p>", "+<p>Friday.</p>"]

    desk.heads.away = True
    away = (await desk.letters.show(id)).diff
    assert away
    assert "Elasticsearch does not answer" in away.note
    desk.heads.away = False

    desk.heads.heads_by_key["town:en:a"] = head.model_copy(update={"change": ref.model_copy(update={"offset": 77})})
    gone = (await desk.letters.show(id)).diff
    assert gone
    assert "not in cms.changes any more" in gone.note
    deleted = head.model_copy(update={"state": "deleted"})
    desk.heads.heads_by_key["town:en:a"] = deleted
    assert "the page is deleted" in ((await desk.letters.show(id)).diff or gone).note


async def test_a_later_topics_letter_takes_its_page_from_the_log(desk: Desk) -> None:
    old, new = change("a", "<p>Old.</p>", 3), change("a", "<p>New.</p>", 4)
    places = await desk.sender.send_many([Outgoing(CHANGES, c.page_key, c) for c in (old, new)])
    refs = [
        making.change(page_id="a").model_copy(
            update={"revision": c.revision, "partition": p.partition, "offset": p.offset}
        )
        for c, p in zip((old, new), places, strict=True)
    ]
    desk.heads.heads_by_key["town:en:a"] = Head(change=refs[0], state="live", settled_at=NOON)
    (part,) = parts_of(refs[1])
    await desk.bury(EMBEDDINGS, b"town:en:a#0", part.encode(), partition=0)
    id = await desk.id()
    shown = await desk.letters.show(id)
    assert shown.diff
    assert list(shown.diff.lines[-2:]) == ["-<p>Old.</p>", "+<p>New.</p>"]
    assert isinstance(shown.value, dict)
    chunks = shown.value["chunks"]
    assert isinstance(chunks, list)
    assert "characters of base64" in str(chunks[0])
    whole = await desk.letters.show(id, full=True)
    assert await desk.letters.redrive(id, json.dumps(whole.value).encode())
    assert (await desk.records(EMBEDDINGS))[0].value == part.encode()


async def test_a_message_without_key_and_value_is_buried_too(desk: Desk) -> None:
    """aiokafka cannot send one; other producers can, and its partition must not wait for it for ever."""

    async def handler(record: Record, sender: Sender) -> None:
        PageChange.decode(record.value)

    guard = Guard(
        Stage("chunk", {CHANGES: handler}, patient=False), CHANGES, handler, desk.sender, RetryPolicy(2, 0.0), 10.0
    )
    async with asyncio.timeout(30):
        await guard(RecordInFlight(Record(prefixed(desk.settings, CHANGES), 1, 7, None, None), b""))
    (letter,) = (await desk.letters.list(EVERYTHING)).letters
    assert (letter.key, letter.size, letter.code) == (None, 0, "bad-message")
    assert (await desk.letters.drop(letter.id)).state == "dropped"


async def test_an_edit_must_be_a_message_about_the_same_page(desk: Desk) -> None:
    await desk.bury(CHANGES, b"town:en:a", b"x", partition=0)
    id = await desk.id()
    for value, said in ((b"{}", "op: Field required"), (b"no", "not a PageChange"), (change("b").encode(), "another")):
        with pytest.raises(BadValue, match=said):
            await desk.letters.redrive(id, value)
    assert await desk.id() == id
    assert await desk.records(CHANGES) == []


async def test_unknown_letters(desk: Desk) -> None:
    await desk.bury(CHANGES, b"town:en:a", b"x", partition=0)
    id = await desk.id()
    await desk.letters.drop(id)
    topic, partition, _ = id.split("/")
    mark = f"{topic}/{partition}/1"
    for unknown in (mark, f"{topic}/{partition}/9", f"{topic}/77/0", "answer.events/0/0", "x/0/0", f"{id}/0", "", "0"):
        with pytest.raises(UnknownLetter):
            await desk.letters.show(unknown)
    assert (await desk.letters.show(id)).letter.state == "dropped"


async def test_letters_past_their_retention_are_not_counted_any_more(desk: Desk) -> None:
    for n in range(3):
        await desk.bury(CHANGES, b"town:en:a", str(n).encode())
    assert sum(c.count for c in await desk.letters.open_counts()) == 3
    partition = int((await desk.letters.list(EVERYTHING)).letters[0].id.split("/")[1])
    admin = AIOKafkaAdminClient(bootstrap_servers=desk.settings.kafka)
    await admin.start()
    try:
        place = TopicPartition(prefixed(desk.settings, dead_letter_topic(CHANGES)), partition)
        await admin.delete_records({place: RecordsToDelete(before_offset=2)})
    finally:
        await admin.close()
    assert sum(c.count for c in await desk.letters.open_counts()) == 1
    assert (await desk.letters.list(EVERYTHING)).total == 1


async def test_ten_thousand_letters_are_listed_without_holding_them(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    count, padding = 10_000, b"x" * 500
    for start in range(0, count, 1_000):
        await asyncio.gather(
            *(desk.bury(CHANGES, f"town:en:p{n}".encode(), padding, partition=0) for n in range(start, start + 1_000))
        )
    alive: Counter[type] = Counter()
    most: Counter[type] = Counter()

    def count_those_alive(kind: type) -> None:
        made = kind.__init__  # type: ignore[misc]

        def counted(self: object, *args: object, **kwargs: object) -> None:
            made(self, *args, **kwargs)
            alive[kind] += 1
            most[kind] = max(most[kind], alive[kind])
            weakref.finalize(self, alive.subtract, (kind,))

        monkeypatch.setattr(kind, "__init__", counted)

    count_those_alive(Record)
    count_those_alive(DeadLetterSummary)
    listed = await desk.letters.list(EVERYTHING)
    assert (listed.total, len(listed.letters)) == (count, 100)
    assert 0 < most[Record] <= 2 * 500  # two batches: one at work, one just read
    assert 100 <= most[DeadLetterSummary] <= 100 + 500
    progress = []
    async with aclosing(desk.letters.redrive_all(EVERYTHING)) as redriving:
        async for counts in redriving:
            progress.append(counts.handled)
    assert progress == sorted(set(progress))
    assert progress[-1] == count
    assert len(progress) >= count / 100
    assert most[Record] <= 2 * 500
    assert (await desk.letters.list(EVERYTHING)).total == 0
    assert from_headers((await desk.records(dead_letter_topic(CHANGES)))[0].headers).stage == "chunk"
