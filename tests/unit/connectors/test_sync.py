"""Sync: everything a CMS lists gets into the log, once, whatever happens on the way."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from connectors.cms import sync as syncing
from connectors.cms.frame import Listed
from connectors.cms.ledger import Ledger
from connectors.cms.sync import AlreadyRunning, SyncOutcome, SyncProgress, alone, sync
from pipelines.runtime.errors import Permanent, Retryable, TooLarge
from tests.connecting import SITE, Log
from tests.fakes.source import FakeSource


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def cms() -> FakeSource:
    source = FakeSource()
    for number in range(5):
        source.save(f"p{number}")
    return source


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syncing, "PAUSES", ())


async def run(cms: FakeSource, log: Log, home: Path, seen: list[SyncProgress] | None = None) -> SyncOutcome:
    return await sync(cms, SITE, "blog", log.intake(), home, (seen if seen is not None else []).append)


async def test_everything_is_sent_in_the_bulk_lane_as_the_connectors(cms: FakeSource, log: Log, tmp_path: Path) -> None:
    cms.save("p0", "de")
    seen: list[SyncProgress] = []
    outcome = await run(cms, log, tmp_path, seen)
    assert (outcome.sent, outcome.failed, outcome.left_out) == (6, 0, 0)
    assert log.titles() == {f"en:p{n}": f"p{n}" for n in range(5)} | {"de:p0": "p0"}
    assert {change.source for change in log.changes} == {"blog"}
    assert set(log.lanes) == {"bulk"}
    assert (seen[-1].step, seen[-1].done, seen[-1].total) == ("pages", 6, 6)


async def test_interrupted_it_goes_on_there(
    cms: FakeSource, log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(syncing, "FETCHED", 2)
    log.refuse = lambda change: Retryable("no broker") if change.page_id == "p3" else None
    with pytest.raises(Retryable):
        await run(cms, log, tmp_path)
    assert set(log.titles()) <= {"en:p0", "en:p1", "en:p2"}
    log.refuse = lambda _: None
    cms.fetched.clear()
    await run(cms, log, tmp_path)
    assert len(log.public()) == 5
    assert "p0" not in cms.fetched


async def test_interrupted_a_page_that_changed_meanwhile_is_fetched_again(
    cms: FakeSource, log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(syncing, "FETCHED", 2)
    log.refuse = lambda change: Retryable("no broker") if change.page_id == "p3" else None
    with pytest.raises(Retryable):
        await run(cms, log, tmp_path)
    log.refuse = lambda _: None
    cms.save("p0", title="new")
    await run(cms, log, tmp_path)
    assert log.titles()["en:p0"] == "new"


async def test_repeated_it_asks_for_all_again(cms: FakeSource, log: Log, tmp_path: Path) -> None:
    await run(cms, log, tmp_path)
    outcome = await run(cms, log, tmp_path)
    assert (outcome.sent, len(cms.fetched)) == (5, 10)


async def test_a_page_that_cannot_be_read_is_told_and_tried_again_next_time(
    cms: FakeSource, log: Log, tmp_path: Path
) -> None:
    cms.unreadable = {"p2"}
    outcome = await run(cms, log, tmp_path)
    assert [(f.page_id, f.reason) for f in outcome.failures] == [("p2", "its template is broken")]
    assert len(log.public()) == 4
    cms.unreadable.clear()
    cms.fetched.clear()
    assert (await run(cms, log, tmp_path)).sent == 1
    assert cms.fetched == ["p2"]


async def test_a_page_that_the_intake_refuses_stops_no_other(cms: FakeSource, log: Log, tmp_path: Path) -> None:
    cms.save("p2", content="x" * 10_001)
    outcome = await run(cms, log, tmp_path)
    assert (outcome.sent, outcome.failed) == (4, 1)
    assert "the limit is 10,000" in outcome.failures[0].reason
    assert (await run(cms, log, tmp_path)).failed == 1  # it is tried again
    log.refuse = lambda change: TooLarge("message") if change.page_id == "p1" else None
    assert (await run(cms, log, tmp_path / "anew")).failed == 2


async def test_a_page_deleted_between_inventory_and_fetch_is_left_out(
    cms: FakeSource, log: Log, tmp_path: Path
) -> None:
    cms.before_fetch = lambda: cms.pages.pop(("p1", "en"), None) and None
    outcome = await run(cms, log, tmp_path)
    assert (outcome.sent, outcome.left_out, outcome.failed) == (4, 1, 0)


async def test_an_inventory_that_breaks_sends_nothing(cms: FakeSource, log: Log, tmp_path: Path) -> None:
    cms.breaks_after, cms.error = 3, Permanent("not ours")
    with pytest.raises(Permanent):
        await run(cms, log, tmp_path)
    assert log.changes == []


async def test_a_cms_that_comes_back_is_waited_for(
    cms: FakeSource, log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(syncing, "PAUSES", (0.0, 0.0))
    tries = 0

    def away_at_first() -> None:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise Retryable("restarting")

    cms.before_fetch = away_at_first
    assert (await run(cms, log, tmp_path)).sent == 5


async def test_a_cms_that_wants_an_hour_is_left_alone(
    cms: FakeSource, log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(syncing, "PAUSES", (0.0,))
    error = Retryable("busy")
    error.retry_after = 3600.0  # type: ignore[attr-defined]
    cms.breaks_after, cms.error = 0, error
    with pytest.raises(Retryable):
        await run(cms, log, tmp_path)
    assert cms.inventories == 1


async def test_one_at_a_time(cms: FakeSource, log: Log, tmp_path: Path) -> None:
    with alone(tmp_path, SITE, "blog"):
        with pytest.raises(AlreadyRunning):
            await run(cms, log, tmp_path)
        other = await sync(cms, SITE, "shop", log.intake(), tmp_path, lambda _: None)
    assert other.sent == 5
    assert (await run(cms, log, tmp_path)).sent == 5


def test_a_ledger_of_a_hundred_thousand_pages() -> None:
    with closing(Ledger(SITE)) as ledger:
        for start in range(0, 100_000, 1_000):
            ledger.add_listed(Listed(f"page/{n}", "en", n) for n in range(start, start + 1_000))
        assert ledger.count_wanted() == {"missing": 100_000}
        ledger.add_done(Listed(f"page/{n}", "en", n) for n in range(99_999))
        assert [one.listed.page_id for one in ledger.wanted("", 10)] == ["page/99999"]
