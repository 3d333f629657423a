"""What the edge relies on, the same for dead letters in the real Kafka and for their in-memory sibling."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from uuid import uuid4

import pytest
from aiokafka.admin import AIOKafkaAdminClient

from adapters.kafka import KafkaSender, ensure_topics, prefixed
from adapters.kafka.bus import KafkaBus
from adapters.kafka.log import KafkaLogReader
from pipelines.operate.dead_letters.letters import LetterHandled, Letters, LetterUnreadable, UnknownLetter
from pipelines.operate.dead_letters.open_letters import OpenLetters
from pipelines.operate.dead_letters.view import BadValue
from pipelines.runtime.dead_letters import DeadLetter, to_headers
from schemas.head import Head
from schemas.letters import DeadLetterCounts, DeadLetterFilter
from schemas.topics import CHANGES, all_topics, dead_letter_topic
from tests.engine_fixture import Servers
from tests.fakes.ports import FakeLetters
from tests.making import NOON, letter
from wiring.settings import Settings

EVERYTHING = DeadLetterFilter()


class NoHeads:
    """The index shows nothing."""

    async def heads(self, site: str, page_keys: Iterable[str]) -> Mapping[str, Head]:
        return {}


@dataclass
class Desk:
    """Letters, and how a stage buries them: number n fails n hours after noon; an empty code makes it unreadable."""

    letters: Letters
    bury: Callable[[int, str], Awaitable[None]]


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.engine)])
async def desk(request: pytest.FixtureRequest) -> AsyncIterator[Desk]:
    if request.param == "fake":
        fake = FakeLetters(accepts=lambda value: value != b"{}")

        async def keep(n: int, code: str) -> None:
            more = {"code": code} if code else {"stage": None, "code": "unreadable"}
            made = letter(n, f"p{n}", last_failed_at=NOON + timedelta(hours=n), **more)
            fake.kept[made.letter.id] = made

        yield Desk(fake, keep)
        return
    engine: Servers = request.getfixturevalue("engine")
    settings = Settings(kafka=engine.kafka, topic_prefix=f"t{uuid4().hex[:10]}.", partitions=1)
    await ensure_topics(engine.kafka, settings)
    counted = OpenLetters(KafkaBus(settings))
    async with KafkaSender(settings) as sender, KafkaLogReader(settings, CHANGES) as changes:

        async def bury(n: int, code: str) -> None:
            at = NOON + timedelta(hours=n)
            source = prefixed(settings, CHANGES)
            why = DeadLetter("chunk", source, 0, n, 0, "E", code, "no", 1, at, at)
            headers = to_headers((), why) if code else ()
            await sender.send_bytes(dead_letter_topic(CHANGES), f"town:en:p{n}".encode(), b"x", headers)

        yield Desk(Letters(KafkaBus(settings), sender, NoHeads(), changes, counted), bury)
    await counted.aclose()
    admin = AIOKafkaAdminClient(bootstrap_servers=engine.kafka)
    await admin.start()
    try:
        await admin.delete_topics([prefixed(settings, topic) for topic in all_topics()])
    finally:
        await admin.close()


async def keys(desk: Desk, limit: int = 100, *, handled: bool = False, **wanted: object) -> list[str | None]:
    found = await desk.letters.list(DeadLetterFilter.model_validate(wanted), limit, handled=handled)
    return [one.page_id for one in found.letters]


async def id_of(desk: Desk, page: str) -> str:
    (one,) = (await desk.letters.list(DeadLetterFilter(page=page), 2, handled=True)).letters
    return one.id


async def test_the_newest_are_listed_and_all_are_counted(desk: Desk) -> None:
    for n in (1, 2, 3):
        await desk.bury(n, "x" if n < 3 else "y")
    assert await keys(desk) == ["p3", "p2", "p1"]
    assert await keys(desk, 1, code="x") == ["p2"]
    assert await keys(desk, since=NOON + timedelta(hours=2)) == ["p3", "p2"]
    assert (await desk.letters.list(EVERYTHING, 1)).total == 3
    assert (await desk.letters.list(EVERYTHING, 0)).letters == ()
    assert {(c.stage, c.code): c.count for c in await desk.letters.open_counts()} == {
        ("chunk", "x"): 2,
        ("chunk", "y"): 1,
    }


async def test_a_settled_letter_is_open_no_more_and_stays_settled(desk: Desk) -> None:
    for n in (1, 2, 3):
        await desk.bury(n, "x")
    ids = [await id_of(desk, f"p{n}") for n in (1, 2, 3)]
    states = [
        (await desk.letters.redrive(ids[0])).state,
        (await desk.letters.drop(ids[1])).state,
    ]
    assert states == ["redriven", "dropped"]
    assert await keys(desk) == ["p3"]
    shown = (await desk.letters.list(EVERYTHING, 100, handled=True)).letters
    assert [one.state for one in shown] == ["open", "dropped", "redriven"]
    assert [one.handled_at is not None for one in shown] == [False, True, True]
    for id in ids[:2]:
        assert (await desk.letters.show(id)).letter.state != "open"
        with pytest.raises(LetterHandled):
            await desk.letters.redrive(id)
        with pytest.raises(LetterHandled):
            await desk.letters.drop(id)
    assert [count.count for count in await desk.letters.open_counts()] == [1]


async def test_a_letter_nobody_knows(desk: Desk) -> None:
    for use in (desk.letters.show, desk.letters.redrive, desk.letters.drop):
        with pytest.raises(UnknownLetter):
            await use("cms.changes/0/77")


async def test_a_value_that_does_not_fit_leaves_the_letter_open(desk: Desk) -> None:
    await desk.bury(1, "x")
    with pytest.raises(BadValue):
        await desk.letters.redrive(await id_of(desk, "p1"), b"{}")
    assert await keys(desk) == ["p1"]


async def test_what_is_unreadable_can_only_be_dropped(desk: Desk) -> None:
    await desk.bury(1, "x")
    await desk.bury(2, "")
    (odd,) = (await desk.letters.list(DeadLetterFilter(code="unreadable"), 9)).letters
    assert (odd.stage, odd.state) == (None, "open")
    with pytest.raises(LetterUnreadable):
        await desk.letters.redrive(odd.id)
    assert [c async for c in desk.letters.redrive_all(EVERYTHING)][-1] == DeadLetterCounts(handled=1, refused=1)
    assert [c async for c in desk.letters.drop_all(EVERYTHING)][-1] == DeadLetterCounts(handled=1)
    assert [c async for c in desk.letters.drop_all(EVERYTHING)] == []
