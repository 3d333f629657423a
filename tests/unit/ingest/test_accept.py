"""Accept: the order of a page's changes is decided here, and what is accepted is in the log."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.ingest import accept as module
from pipelines.ingest.accept import Change, Intake
from pipelines.ingest.index import index_part
from pipelines.runtime.errors import Retryable, TooLarge, UnknownSite
from pipelines.runtime.record import LANES, Lane
from schemas.base import MAX_REVISION, Message
from schemas.head import Head
from schemas.ingest import ReceiptEvent
from schemas.page import ChangeRef, Op, PageChange, PageDocument
from schemas.topics import CHANGES, RECEIPTS, Topic
from tests.fakes.pages import FakePages, FakeSender
from tests.making import NOON, change, parts_of
from wiring.settings import Settings, SiteSettings

NOON_MS = round(NOON.timestamp() * 1000)
SETTINGS = Settings(sites={"town": SiteSettings(languages=("en", "de"))}, content_limit=100)


class Clock:
    """Stands still unless a test moves it."""

    def __init__(self) -> None:
        self.time = NOON

    def __call__(self) -> Any:
        return self.time


class Bench:
    """An intake and what it put into the log."""

    def __init__(self, pages: FakePages | None = None, sender: FakeSender | None = None) -> None:
        self.pages = pages or FakePages()
        self.sender = sender or FakeSender()
        self.clock = Clock()
        self.intake = Intake(self.sender, self.pages, SETTINGS, self.clock)

    async def accept(self, *changes: Change) -> list[tuple[int, bool]]:
        """Revision and whether it was superseded, per change."""
        return [(a.revision, a.superseded) for a in await self.intake.accept("town", changes, "test")]

    def log(self) -> list[PageChange]:
        return [s.message for s in self.sender.sent if s.topic == CHANGES and isinstance(s.message, PageChange)]

    def revisions(self, page_id: str = "fees") -> list[int]:
        return [c.revision for c in self.log() if c.page_id == page_id]


def save(revision: int | None = None, page_id: str = "fees", op: Op = "upsert", **fields: Any) -> Change:
    return Change(op, PageDocument(id=page_id, revision=revision, **fields))


async def shown(store: FakePages, ref: ChangeRef) -> None:
    """The index stage has worked on this change."""
    for part in parts_of(ref):
        await index_part(part, store, lambda: NOON)


async def test_a_save_is_in_the_log_with_a_receipt_that_says_queued() -> None:
    bench = Bench()
    [accepted] = await bench.intake.accept("town", [save(content="<p>Open.</p>")], "push")
    assert (accepted.page_key, accepted.revision, accepted.superseded) == ("town:en:fees", NOON_MS, False)
    changed, receipt = bench.sender.sent
    assert (changed.topic, changed.key) == (CHANGES, "town:en:fees")
    assert isinstance(changed.message, PageChange)
    assert (changed.message.source, changed.message.accepted_at) == ("push", NOON)
    assert changed.message.page == PageDocument(id="fees", lang="en", content="<p>Open.</p>")
    assert (receipt.topic, receipt.key) == (RECEIPTS, "town:en:fees")
    assert isinstance(receipt.message, ReceiptEvent)
    assert (receipt.message.state, receipt.message.change.revision) == ("queued", NOON_MS)


@pytest.mark.parametrize("lane", LANES)
async def test_change_and_receipt_travel_in_the_lane_asked_for(lane: Lane) -> None:
    bench = Bench()
    await bench.intake.accept("town", [save()], "push", lane)
    assert [sent.lane for sent in bench.sender.sent] == [lane, lane]


async def test_a_page_without_a_language_is_in_the_first_of_its_site() -> None:
    bench = Bench()
    await bench.accept(save(), save(lang="de"))
    assert [c.page_key for c in bench.log()] == ["town:en:fees", "town:de:fees"]


async def test_revisions_grow_while_the_clock_stands_still_or_goes_back() -> None:
    bench = Bench()
    await bench.accept(save())
    await bench.accept(save())
    bench.clock.time -= timedelta(minutes=5)
    await bench.accept(save(op="delete"))
    assert bench.revisions() == [NOON_MS, NOON_MS + 1, NOON_MS + 2]


async def test_saves_of_a_page_at_the_same_time_get_different_revisions() -> None:
    bench = Bench()
    results = await asyncio.gather(*(bench.accept(save()) for _ in range(3)))
    assert sorted(r for [(r, _)] in results) == [NOON_MS, NOON_MS + 1, NOON_MS + 2]


async def test_a_page_twice_in_a_bulk_ends_with_the_later_line() -> None:
    bench = Bench()
    assert await bench.accept(save(title="a"), save(page_id="other"), save(title="b")) == [
        (NOON_MS, False),
        (NOON_MS, False),
        (NOON_MS + 1, False),
    ]
    assert [(c.revision, c.page and c.page.title) for c in bench.log() if c.page_id == "fees"] == [
        (NOON_MS, "a"),
        (NOON_MS + 1, "b"),
    ]


async def test_an_older_line_behind_a_newer_one_of_the_same_page_is_superseded() -> None:
    bench = Bench()
    assert await bench.accept(save(5), save(3), save(6)) == [(5, False), (3, True), (6, False)]
    assert bench.revisions() == [5, 6]


async def test_after_a_given_revision_an_assigned_one_is_higher_still() -> None:
    bench = Bench()
    far = NOON_MS + 10**9
    assert await bench.accept(save(far), save()) == [(far, False), (far + 1, False)]


async def test_a_gateway_with_a_slow_clock_goes_on_from_what_the_index_shows() -> None:
    bench = Bench()
    await shown(bench.pages, change(NOON_MS + 60_000))
    assert await bench.accept(save()) == [(NOON_MS + 60_001, False)]


async def test_a_gateway_with_a_slow_clock_goes_on_from_what_another_accepted() -> None:
    bench = Bench()
    await bench.pages.put_receipt(ReceiptEvent(change=change(NOON_MS + 60_000), state="queued", at=NOON))
    assert await bench.accept(save()) == [(NOON_MS + 60_001, False)]


async def test_what_is_older_than_the_index_shows_does_not_get_into_the_log() -> None:
    bench = Bench()
    await shown(bench.pages, change(7))
    assert await bench.accept(save(6)) == [(6, True)]
    assert bench.sender.sent == []


async def test_an_accepted_change_supersedes_before_the_index_shows_it() -> None:
    bench = Bench()
    await shown(bench.pages, change(3))
    await bench.pages.put_receipt(ReceiptEvent(change=change(7), state="queued", at=NOON))
    assert await bench.accept(save(6)) == [(6, True)]


async def test_the_same_revision_again_is_accepted_again() -> None:
    bench = Bench()
    await shown(bench.pages, change(7))
    assert await bench.accept(save(7)) == [(7, False)]


async def test_a_delete_stays_when_the_same_revision_is_published_again() -> None:
    bench = Bench()
    await shown(bench.pages, change(7, "delete"))
    assert await bench.accept(save(7), save(7, op="delete"), save(8)) == [(7, True), (7, False), (8, False)]


async def test_deleting_a_page_never_seen_is_a_change_like_others() -> None:
    bench = Bench()
    assert await bench.accept(save(op="delete")) == [(NOON_MS, False)]
    assert [(c.op, c.page) for c in bench.log()] == [("delete", None)]


async def test_after_the_highest_revision_of_all_a_save_still_makes_a_message_that_can_be_read() -> None:
    bench = Bench()
    await bench.accept(save(MAX_REVISION))
    assert await bench.accept(save()) == [(MAX_REVISION, False)]
    assert [PageChange.decode(c.encode()) for c in bench.log()] == bench.log()


@pytest.mark.parametrize("error", [Retryable("away"), TimeoutError()])
async def test_without_elasticsearch_a_save_is_accepted_all_the_same(error: Exception) -> None:
    class Away(FakePages):
        async def heads(self, site: str, page_keys: Iterable[str]) -> Mapping[str, Head]:
            raise error

    bench = Bench(Away())
    assert await bench.accept(save(5)) == [(5, False)]
    assert bench.revisions() == [5]


async def test_a_look_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent(FakePages):
        async def receipts(self, page_keys: Iterable[str]) -> Mapping[str, ReceiptEvent]:
            await asyncio.Event().wait()
            return {}

    monkeypatch.setattr(module, "LOOK_TIMEOUT", 0.01)
    assert await Bench(Silent()).accept(save(5)) == [(5, False)]


async def test_one_page_too_large_and_none_is_accepted() -> None:
    bench = Bench()
    await bench.accept(save(content="ä" * 50))  # 100 bytes
    bench.sender.sent.clear()
    with pytest.raises(TooLarge, match=r"'fees'.*102 bytes.*100 \(PAGEWIRE_CONTENT_LIMIT\)"):
        await bench.accept(save(page_id="fine"), save(content="ä" * 51))
    assert bench.sender.sent == []


async def test_a_page_that_fits_no_message_is_refused_before_anything_is_sent() -> None:
    bench = Bench()
    huge = save(attachments=({"data_base64": "A" * 9_000_000},))
    with pytest.raises(TooLarge, match="as a message"):
        await bench.accept(save(page_id="fine"), huge)
    assert bench.sender.sent == []


async def test_an_unknown_site_is_refused() -> None:
    with pytest.raises(UnknownSite, match="'village'"):
        await Bench().intake.accept("village", [save()], "push")


async def test_a_broker_that_takes_nothing_is_told_and_the_next_try_is_newer() -> None:
    class Down(FakeSender):
        down = True

        async def send(self, topic: Topic, key: str, message: Message, **how: Any) -> None:
            if self.down:
                raise Retryable("Kafka takes no message")
            await super().send(topic, key, message, **how)

    sender = Down()
    bench = Bench(sender=sender)
    with pytest.raises(Retryable):
        await bench.accept(save())
    sender.down = False
    assert await bench.accept(save()) == [(NOON_MS + 1, False)]
    assert bench.revisions() == [NOON_MS + 1]


async def test_a_page_sends_its_next_change_only_when_the_broker_has_the_last() -> None:
    """Two sends of a page under way at once could reach the log the other way round."""

    class Slow(FakeSender):
        def __init__(self) -> None:
            super().__init__()
            self.under_way: set[str] = set()

        async def send(self, topic: Topic, key: str, message: Message, **how: Any) -> None:
            assert key not in self.under_way
            self.under_way.add(key)
            await asyncio.sleep(0)
            self.under_way.remove(key)
            await super().send(topic, key, message, **how)

    bench = Bench(sender=Slow())
    await bench.accept(save(), save(), save(page_id="other"), save())
    assert bench.revisions() == [NOON_MS, NOON_MS + 1, NOON_MS + 2]
    queued = [s.message for s in bench.sender.sent if s.topic == RECEIPTS and s.key == "town:en:fees"]
    assert [e.change.revision for e in queued if isinstance(e, ReceiptEvent)] == [NOON_MS + 2]


async def test_the_pages_kept_in_mind_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REMEMBERED", 2)
    bench = Bench()
    await bench.accept(*(save(page_id=name) for name in "abc"))
    # "a" is forgotten and begins again; "c" goes on.
    assert await bench.accept(save(page_id="c"), save(page_id="a")) == [(NOON_MS + 1, False), (NOON_MS, False)]


lines = st.lists(
    st.tuples(st.sampled_from("ab"), st.one_of(st.none(), st.integers(0, 5), st.just(NOON_MS + 3)), st.booleans()),
    max_size=8,
)


@given(bulks=st.lists(lines, max_size=4), ticks=st.lists(st.integers(-3, 3), min_size=4, max_size=4))
async def test_whatever_comes_in_each_page_of_the_log_only_grows(
    bulks: list[list[tuple[str, int | None, bool]]], ticks: list[int]
) -> None:
    """With an index that follows at once: no older revision gets behind a newer one, assigned ones are new."""
    bench = Bench()
    for bulk, tick in zip(bulks, ticks, strict=False):
        bench.clock.time += timedelta(milliseconds=tick)
        before = len(bench.log())
        outcome = await bench.accept(*(save(rev, page, "delete" if gone else "upsert") for page, rev, gone in bulk))
        assert all(not superseded for (_, superseded), (_, rev, _) in zip(outcome, bulk, strict=True) if rev is None)
        for logged in bench.log()[before:]:
            await shown(bench.pages, reference_of(logged))
    for page in "ab":
        history = [(c.revision, c.op == "delete") for c in bench.log() if c.page_id == page]
        assert history == sorted(history)


def reference_of(logged: PageChange) -> ChangeRef:
    return change(logged.revision, logged.op, logged.page_id).model_copy(update={"lang": logged.lang})
