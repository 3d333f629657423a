"""Receipts: what an editor reads is put together from the newest event and what the index shows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any

import pytest

from pipelines.ingest import receipts as module
from pipelines.ingest.embedding_plan import parts
from pipelines.ingest.handlers import chunked
from pipelines.ingest.index import index_part
from pipelines.ingest.receipts import ReceiptReader, receipt
from pipelines.runtime.errors import Retryable
from pipelines.runtime.record import Record
from schemas.head import Head
from schemas.ingest import ChunkCounts, Chunker, Failure, Reading, Receipt, ReceiptEvent, WordCounts
from schemas.page import PageChange, PageDocument
from tests.fakes.pages import FakePages
from tests.making import NOON, change, parts_of
from text.reader import READER

KEY = change().page_key
READ = Reading(reader="1", words=WordCounts(visible=12, indexed=9, left_out={"menu": 3}))
COST = ChunkCounts(total=3, embedded=2, reused=1)


def event(revision: int, state: Any, **fields: Any) -> ReceiptEvent:
    return ReceiptEvent(change=change(revision), state=state, at=NOON, **fields)


def head(revision: int, state: Any = "live") -> Head:
    ref = change(revision, "upsert" if state == "live" else "delete")
    return Head(change=ref, state=state, cost=COST, settled_at=NOON + timedelta(milliseconds=250))


def fold(newest: ReceiptEvent | None, shown: Head | None) -> tuple[str, int, int | None]:
    folded = receipt(newest, shown)
    assert folded is not None
    return folded.state, folded.accepted_revision, folded.searchable_revision


def test_a_page_of_which_nothing_is_known_has_no_receipt() -> None:
    assert receipt(None, None) is None


def test_a_page_that_is_not_shown_yet_has_the_receipt_of_its_event_alone() -> None:
    unseen = head(5, "deleted").model_copy(update={"change": change(5), "ahead": True})
    assert receipt(None, unseen) is None
    assert fold(event(5, "queued"), unseen) == ("queued", 5, None)
    assert fold(event(5, "failed"), unseen) == ("failed", 5, None)


@pytest.mark.parametrize(
    ("newest", "shown", "expected"),
    [
        # Nothing of the page is in the index.
        (event(5, "queued"), None, ("queued", 5, None)),
        (event(5, "failed"), None, ("failed", 5, None)),
        (event(5, "deleted"), None, ("deleted", 5, None)),
        (event(5, "superseded"), None, ("queued", 5, None)),  # the winner is on its way
        (event(5, "searchable"), None, ("queued", 5, None)),  # the index was lost
        # The index shows an older revision.
        (event(5, "queued"), head(4), ("queued", 5, 4)),
        (event(5, "failed"), head(4), ("failed", 5, 4)),
        (event(5, "superseded"), head(4), ("queued", 5, 4)),
        (event(5, "searchable"), head(4), ("queued", 5, 4)),  # an older index came back
        (event(5, "deleted"), head(4), ("queued", 5, 4)),
        (event(5, "queued"), head(4, "deleted"), ("queued", 5, None)),
        (event(5, "deleted"), head(4, "deleted"), ("deleted", 5, None)),
        # It is written, but not refreshed before the event says so.
        (event(5, "queued"), head(5), ("queued", 5, None)),
        (event(5, "queued"), head(5, "deleted"), ("queued", 5, None)),
        # It shows this one, or a newer one whose event is not here yet.
        (event(5, "searchable"), head(5), ("searchable", 5, 5)),
        (event(5, "deleted"), head(5, "deleted"), ("deleted", 5, None)),
        (event(5, "failed"), head(5), ("failed", 5, None)),  # a refresh that failed after the write
        (event(5, "superseded"), head(5, "deleted"), ("deleted", 5, None)),
        (event(5, "superseded"), head(6), ("searchable", 6, 6)),
        (event(5, "queued"), head(6), ("searchable", 6, 6)),
        (event(5, "failed"), head(6, "deleted"), ("deleted", 6, None)),
        # The receipts were lost.
        (None, head(5), ("searchable", 5, 5)),
        (None, head(5, "deleted"), ("deleted", 5, None)),
    ],
    ids=lambda value: (
        None
        if isinstance(value, tuple)
        else f"{value.state}-{value.change.revision}"
        if isinstance(value, ReceiptEvent | Head)
        else "none"
    ),
)
def test_what_event_and_head_say_together(
    newest: ReceiptEvent | None, shown: Head | None, expected: tuple[str, int, int | None]
) -> None:
    assert fold(newest, shown) == expected


def test_a_searchable_page_tells_its_cost_and_how_long_it_took() -> None:
    folded = receipt(event(5, "searchable", notes=("a table was cut",)), head(5).model_copy(update={"reading": READ}))
    assert folded == Receipt(
        page_key=KEY,
        accepted_revision=5,
        searchable_revision=5,
        state="searchable",
        chunks=COST,
        accepted_at=NOON,
        searchable_at=NOON + timedelta(milliseconds=250),
        lag_ms=250,
        notes=("a table was cut",),
        reading=READ,
    )


def test_a_failed_page_says_where_and_why() -> None:
    folded = receipt(event(5, "failed", error=Failure(stage="embed", reason="too odd")), head(4))
    assert folded is not None
    assert (folded.error, folded.lag_ms, folded.searchable_at) == ("embed: too odd", None, head(4).settled_at)


def test_notes_of_an_older_change_are_not_put_on_a_newer_one() -> None:
    folded = receipt(event(5, "searchable", notes=("old",)), head(6))
    assert folded is not None
    assert folded.notes == ()


@pytest.mark.parametrize(("shown", "reading"), [(4, READ), (5, None), (6, READ)])
def test_words_are_those_of_what_is_found(shown: int, reading: Reading | None) -> None:
    folded = receipt(event(5, "failed"), head(shown).model_copy(update={"reading": READ}))
    assert folded is not None
    assert folded.reading == reading


def test_clocks_that_disagree_make_no_negative_lag() -> None:
    early = head(5).model_copy(update={"settled_at": NOON - timedelta(seconds=3)})
    folded = receipt(None, early)
    assert folded is not None
    assert folded.lag_ms == 0


class Watched(FakePages):
    """Says how often it was looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = asyncio.Semaphore(0)
        self.looked = 0

    async def receipts(self, page_keys: Iterable[str]) -> Mapping[str, ReceiptEvent]:
        self.looks.release()
        self.looked += 1
        return await super().receipts(page_keys)


class Bench:
    """A reader whose topic and index a test fills."""

    def __init__(self, pages: Watched | None = None) -> None:
        self.pages = pages or Watched()
        self.reader = ReceiptReader(self.pages, self._make_tail)
        self.started = self.closed = False
        self.on_its_way: list[ReceiptEvent] = []  # in the topic, not delivered yet

    def _make_tail(self, deliver: Callable[[Record], None]) -> Bench:
        self._deliver = deliver
        return self

    async def start(self) -> None:
        self.started = True

    async def catch_up(self, key: str, seconds: float) -> None:
        assert key == KEY
        while self.on_its_way:
            self.deliver(self.on_its_way.pop(0))

    async def aclose(self) -> None:
        self.closed = True

    def deliver(self, told: ReceiptEvent) -> None:
        self.deliver_bytes(told.encode())

    def deliver_bytes(self, value: bytes | None) -> None:
        self._deliver(Record("ingest.receipts", 0, 0, KEY.encode(), value))

    async def index(self, revision: int, op: Any = "upsert") -> ReceiptEvent:
        """What the index stage does; returns what it tells."""
        for part in parts_of(change(revision, op)):
            outcome = await index_part(part, self.pages, lambda: NOON)
        assert outcome.receipt is not None
        return outcome.receipt

    async def receipt(self) -> Receipt | None:
        return await self.reader.receipt("town", "en", "fees")


async def goes_on(waiting: asyncio.Task[Any]) -> bool:
    """Whether it is still waiting when everything that can run has run."""
    done, _ = await asyncio.wait({waiting}, timeout=0.05)
    return not done


async def test_the_tail_is_started_and_closed_with_the_reader() -> None:
    bench = Bench()
    await bench.reader.start()
    await bench.reader.aclose()
    assert bench.started
    assert bench.closed


async def test_a_page_just_accepted_is_known_before_the_index_stage_has_stored_its_receipt() -> None:
    bench = Bench()
    assert await bench.receipt() is None
    bench.deliver(event(5, "queued"))
    found = await bench.receipt()
    assert found is not None
    assert (found.state, found.accepted_revision) == ("queued", 5)


async def test_a_page_is_known_as_soon_as_its_receipt_is_in_the_topic() -> None:
    bench = Bench()
    bench.on_its_way = [event(5, "queued")]
    found = await bench.receipt()
    assert found is not None
    assert (found.state, found.accepted_revision) == ("queued", 5)


async def test_the_more_final_event_wins_wherever_it_is_known_from() -> None:
    bench = Bench()
    await bench.pages.put_receipt(event(5, "failed"))
    bench.deliver(event(5, "queued"))
    found = await bench.receipt()
    assert found is not None
    assert found.state == "failed"
    bench.deliver(event(6, "failed"))
    bench.deliver(event(6, "queued"))
    bench.deliver(event(5, "searchable"))
    found = await bench.receipt()
    assert found is not None
    assert (found.state, found.accepted_revision) == ("failed", 6)


async def test_the_receipts_kept_in_mind_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RECENT", 2)
    bench = Bench()
    refs = [change(5, page_id=name) for name in "abc"]
    for ref in (*refs, refs[1]):
        bench.deliver(ReceiptEvent(change=ref, state="queued", at=NOON))
    found = await bench.reader.receipts("town", [ref.page_key for ref in refs])
    assert list(found) == [refs[1].page_key, refs[2].page_key]


async def test_bytes_that_are_no_receipt_do_no_harm() -> None:
    bench = Bench()
    for value in (None, b"", b"{", b'{"v": 2}', b"\xff"):
        bench.deliver_bytes(value)
    assert await bench.receipt() is None


async def test_who_listens_hears_of_all_that_is_settled_until_it_stops() -> None:
    bench = Bench()
    bench.deliver(event(4, "searchable"))
    with bench.reader.newly_settled() as heard, bench.reader.newly_settled() as other:
        bench.deliver(event(5, "queued"))
        assert heard == set()
        bench.deliver(event(5, "failed"))
        assert heard == other == {KEY}
        heard.clear()
        bench.deliver(event(6, "searchable"))
        assert heard == {KEY}
    heard.clear()
    bench.deliver(event(7, "deleted"))
    assert heard == set()


async def test_waiting_ends_at_once_when_it_is_there_already() -> None:
    bench = Bench()
    bench.deliver(await bench.index(5))
    settled = await bench.reader.settled(KEY, (5, NOON), timeout=60)
    assert settled is not None
    assert (settled.state, settled.searchable_revision) == ("searchable", 5)


@pytest.mark.parametrize(
    ("told", "state"),
    [(event(5, "failed"), "failed"), (event(6, "failed"), "failed"), (None, "searchable")],
)
async def test_waiting_ends_with_the_event(told: ReceiptEvent | None, state: str) -> None:
    bench = Bench()
    waiting = asyncio.create_task(bench.reader.settled(KEY, (5, NOON), timeout=60))
    await bench.pages.looks.acquire()
    bench.deliver(event(5, "queued"))
    bench.deliver(event(4, "failed"))  # of an older one: says nothing
    assert await goes_on(waiting)
    assert bench.pages.looked == 2  # one for the old failure; no busy waiting
    bench.deliver(told or await bench.index(5))
    settled = await waiting
    assert settled is not None
    assert settled.state == state
    assert bench.reader._waiting == {}


async def test_what_was_written_but_not_refreshed_is_waited_for() -> None:
    bench = Bench()
    bench.deliver(event(5, "queued"))
    told = await bench.index(5)
    waiting = asyncio.create_task(bench.reader.settled(KEY, (5, NOON), timeout=60))
    assert await goes_on(waiting)
    bench.deliver(told)
    settled = await waiting
    assert settled is not None
    assert settled.state == "searchable"


async def test_a_superseded_change_is_settled_by_what_superseded_it() -> None:
    bench = Bench()
    bench.deliver(await bench.index(7, "delete"))
    settled = await bench.reader.settled(KEY, (5, NOON), timeout=60)
    assert settled is not None
    assert (settled.state, settled.accepted_revision) == ("deleted", 7)


async def test_words_go_with_the_page_from_the_chunk_stage_to_its_receipt() -> None:
    page = PageDocument(id="fees", lang="en", content="<nav>Home</nav><p>Nine euros</p>", left_out={"footer": 2})
    ref = change(5)
    saved = PageChange(
        op="upsert", site=ref.site, lang="en", page_id="fees", revision=5, accepted_at=NOON, source="push", page=page
    )
    cut = chunked(saved, Chunker(mode="content", size=1_000, overlap=0.2), ref.partition, ref.offset)
    bench = Bench()
    for part in parts(cut, [], embedder="fake", model="fake-4", dims=4, embedded=0):
        await index_part(part, bench.pages, lambda: NOON)
    found = await bench.receipt()
    assert found
    words = WordCounts(visible=5, indexed=2, left_out={"menu": 1, "footer": 2})
    assert found.reading == Reading(reader=READER, words=words)


async def test_a_revision_that_is_sent_again_with_other_content_has_a_receipt_of_its_own() -> None:
    bench = Bench()
    bench.deliver(await bench.index(5))
    later = NOON + timedelta(seconds=1)
    again = change(5).model_copy(update={"accepted_at": later, "offset": 99})
    bench.deliver(ReceiptEvent(change=again, state="queued", at=later))
    assert (found := await bench.receipt()) is not None
    assert (found.state, found.accepted_at) == ("queued", later)
    waiting = asyncio.create_task(bench.reader.settled(KEY, (5, later), timeout=60))
    assert await goes_on(waiting)
    for part in parts_of(again):
        outcome = await index_part(part, bench.pages, lambda: later)
    assert outcome.receipt is not None
    bench.deliver(outcome.receipt)
    settled = await waiting
    assert settled is not None
    assert (settled.state, settled.accepted_at) == ("searchable", later)


async def test_an_event_during_the_look_is_not_missed() -> None:
    class Racing(Watched):
        """Between the look at the index and its answer, the change is indexed and told."""

        raced = False

        async def heads(self, site: str, page_keys: Iterable[str]) -> Mapping[str, Head]:
            found = await super().heads(site, page_keys)
            if not self.raced:
                self.raced = True
                bench.deliver(await bench.index(5))
            return found

    bench = Bench(Racing())
    settled = await bench.reader.settled(KEY, (5, NOON), timeout=60)
    assert settled is not None
    assert settled.state == "searchable"


async def test_waiting_gives_up_and_leaves_nothing_behind() -> None:
    bench = Bench()
    bench.deliver(event(5, "queued"))
    assert await bench.reader.settled(KEY, (5, NOON), timeout=0.01) is None
    assert bench.reader._waiting == {}


async def test_several_may_wait_for_the_same_page() -> None:
    bench = Bench()
    waiting = [asyncio.create_task(bench.reader.settled(KEY, (revision, NOON), timeout=60)) for revision in (5, 5, 4)]
    for _ in waiting:
        await bench.pages.looks.acquire()
    bench.deliver(await bench.index(5))
    assert [r and r.searchable_revision for r in await asyncio.gather(*waiting)] == [5, 5, 5]


async def test_who_waits_looks_again_after_a_look_at_the_index_that_was_live_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Outdated(Watched):
        async def heads(self, site: str, page_keys: Iterable[str]) -> Mapping[str, Head]:
            return await super().heads(site, page_keys) if self.looked > 1 else {}

    monkeypatch.setattr(module, "LOOK_AGAIN", 0.01)
    bench = Bench(Outdated())
    bench.deliver(await bench.index(5))  # the one event; none comes after the first look
    settled = await bench.reader.settled(KEY, (5, NOON), timeout=60)
    assert settled is not None
    assert settled.state == "searchable"


async def test_elasticsearch_may_be_away_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    class Away(Watched):
        away = True

        async def heads(self, site: str, page_keys: Iterable[str]) -> Mapping[str, Head]:
            if self.away:
                raise Retryable("away")
            return await super().heads(site, page_keys)

    monkeypatch.setattr(module, "LOOK_AGAIN", 0.01)
    pages = Away()
    bench = Bench(pages)
    assert await bench.reader.settled(KEY, (5, NOON), timeout=0.05) is None
    assert bench.reader._waiting == {}
    pages.away = False
    bench.deliver(await bench.index(5))
    pages.away = True
    waiting = asyncio.create_task(bench.reader.settled(KEY, (5, NOON), timeout=60))
    assert await goes_on(waiting)
    pages.away = False
    settled = await waiting
    assert settled is not None
    assert settled.state == "searchable"


async def test_an_import_runs_while_many_changes_of_a_site_are_not_settled() -> None:
    bench = Bench()
    refs = [change(5, page_id=str(n)) for n in range(module.MANY)]
    for ref in refs:
        assert not bench.reader.is_importing("town")
        bench.deliver(ReceiptEvent(change=ref, state="queued", at=NOON))
    assert bench.reader.is_importing("town")
    assert not bench.reader.is_importing("city")
    bench.deliver(ReceiptEvent(change=refs[0], state="searchable", at=NOON))
    bench.deliver(ReceiptEvent(change=refs[0], state="queued", at=NOON))  # crossed: it is settled
    assert not bench.reader.is_importing("town")
