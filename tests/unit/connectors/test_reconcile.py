"""Reconcile: after it the log says what the CMS says, and whatever an editor does meanwhile wins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.cms import sync as syncing
from connectors.cms.reconcile import Reconciled, reconcile
from connectors.cms.sync import AlreadyRunning, alone
from pipelines.ingest.accept import Change
from pipelines.runtime.errors import Permanent
from schemas.page import PageDocument
from tests.connecting import SITE, Log
from tests.fakes.source import FakeSource


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syncing, "PAUSES", ())


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def cms() -> FakeSource:
    source = FakeSource()
    for number in range(6):
        source.save(f"p{number}")
    return source


async def run(cms: FakeSource, log: Log, home: Path, **how: Any) -> Reconciled:
    return await reconcile(cms, SITE, "blog", log.opened, log.intake(), home, **how)


async def hand_in(log: Log, op: str, page: PageDocument, source: str = "blog") -> None:
    await log.intake().accept(SITE, [Change(op, page)], source)  # type: ignore[arg-type]


def expected(cms: FakeSource) -> dict[str, str]:
    return {f"{lang}:{page_id}": page.title for (page_id, lang), page in cms.pages.items()}


async def test_what_missed_webhooks_left_behind_is_put_right(cms: FakeSource, log: Log, tmp_path: Path) -> None:
    first = await run(cms, log, tmp_path)
    assert (first.missing, first.sent, first.done) == (6, 6, True)
    cms.save("p0", title="changed")
    cms.remove("p1")
    cms.save("p9", "de")
    found = await run(cms, log, tmp_path)
    assert (found.missing, found.newer, found.gone, found.sent, found.deleted) == (1, 1, 1, 2, 1)
    assert log.titles() == expected(cms)
    assert set(log.lanes) == {"bulk"}


async def test_when_all_is_well_nothing_is_fetched_or_sent(cms: FakeSource, log: Log, tmp_path: Path) -> None:
    await run(cms, log, tmp_path)
    count, cms.inventories = len(log.changes), 0
    cms.fetched.clear()
    again = await run(cms, log, tmp_path)
    assert (again.sent, again.deleted, len(log.changes), cms.fetched) == (0, 0, count, [])
    assert cms.inventories == 1  # the second look is for deletes only


async def test_what_visitors_do_not_get_is_named_and_goes_when_it_was_there(
    cms: FakeSource, log: Log, tmp_path: Path
) -> None:
    cms.barred = {"p0"}
    first = await run(cms, log, tmp_path)
    assert (first.sent, first.left_out, first.deleted, first.done) == (5, 1, 0, True)
    assert first.omitted == {"https://town.example/p0": "for members"}
    cms.save("p1", title="for members from now on")
    cms.barred.add("p1")
    second = await run(cms, log, tmp_path)
    assert (second.newer, second.sent, second.deleted) == (1, 0, 1)
    assert set(log.titles()) == {f"en:p{n}" for n in range(2, 6)}
    count = len(log.changes)
    await run(cms, log, tmp_path)
    assert len(log.changes) == count
    cms.barred.clear()
    cms.clock += 1_000
    await run(cms, log, tmp_path)
    assert log.titles() == expected(cms)


async def test_a_dry_run_only_looks(cms: FakeSource, log: Log, tmp_path: Path) -> None:
    found = await run(cms, log, tmp_path, dry_run=True)
    assert (found.missing, found.sent, log.changes) == (6, 0, [])


async def test_pages_of_others_are_left_alone(cms: FakeSource, log: Log, tmp_path: Path) -> None:
    await hand_in(log, "upsert", PageDocument(id="by-hand", lang="en", revision=5, title="by hand"), "push")
    await hand_in(log, "upsert", PageDocument(id="theirs", lang="en", revision=5, title="theirs"), "shop")
    log.garbage.append((b"town:en:broken", b"{"))
    log.garbage.append((b"village:en:p0", b"{}"))
    await run(cms, log, tmp_path)
    assert log.titles() == expected(cms) | {"en:by-hand": "by hand", "en:theirs": "theirs"}


async def test_what_an_operator_deleted_by_hand_stays_deleted(cms: FakeSource, log: Log, tmp_path: Path) -> None:
    await run(cms, log, tmp_path)
    await hand_in(log, "delete", PageDocument(id="p0", lang="en", revision=cms.clock), "push")
    cms.clock += 10_000
    assert (await run(cms, log, tmp_path)).sent == 0
    assert "en:p0" not in log.titles()


async def test_a_page_that_is_public_again_with_its_old_time_comes_back(
    cms: FakeSource, log: Log, tmp_path: Path
) -> None:
    await run(cms, log, tmp_path)
    page = cms.pages["p0", "en"]
    cms.remove("p0")
    await run(cms, log, tmp_path)
    assert "en:p0" not in log.titles()
    cms.clock += 1_000
    cms.pages["p0", "en"] = page  # a restriction was lifted: its modified time is what it was
    back = await run(cms, log, tmp_path)
    assert (back.revived, back.sent) == (1, 1)
    assert log.titles() == expected(cms)
    assert (await run(cms, log, tmp_path)).sent == 0


async def test_a_page_that_an_inventory_skips_once_is_not_deleted(cms: FakeSource, log: Log, tmp_path: Path) -> None:
    await run(cms, log, tmp_path)
    cms.skips = {cms.inventories + 1: "p3"}
    assert (await run(cms, log, tmp_path)).gone == 0
    cms.skips = {cms.inventories + n: "p3" for n in (1, 2)}
    assert (await run(cms, log, tmp_path)).gone == 1


@pytest.mark.parametrize("after", [0, 3, 5])
async def test_an_inventory_that_ends_in_an_error_deletes_nothing(
    cms: FakeSource, log: Log, tmp_path: Path, after: int
) -> None:
    await run(cms, log, tmp_path)
    cms.remove("p0")
    cms.breaks_after, cms.error = after, Permanent("not what we think")
    count = len(log.changes)
    with pytest.raises(Permanent):
        await run(cms, log, tmp_path)
    assert len(log.changes) == count


async def test_more_than_half_go_only_by_force(cms: FakeSource, log: Log, tmp_path: Path) -> None:
    await run(cms, log, tmp_path)
    for number in range(3):
        cms.remove(f"p{number}")
    assert (await run(cms, log, tmp_path)).deleted == 3  # half of them
    cms.remove("p3")
    cms.remove("p4")
    cms.save("new")
    refused = await run(cms, log, tmp_path)
    assert (refused.refused, refused.gone, refused.deleted, refused.sent) == (True, 2, 0, 1)
    assert not refused.done
    forced = await run(cms, log, tmp_path, force=True)
    assert (forced.refused, forced.deleted) == (False, 2)
    assert log.titles() == expected(cms)


async def test_what_visitors_do_not_get_any_more_counts_among_them(cms: FakeSource, log: Log, tmp_path: Path) -> None:
    """Such as all pages, when a firewall or another template stands before them."""
    await run(cms, log, tmp_path)
    for number in range(3):
        cms.save(f"p{number}", title="changed")
    cms.remove("p5")
    cms.barred = {"p0", "p1", "p2"}
    refused = await run(cms, log, tmp_path)
    assert (refused.refused, refused.gone, refused.barred, refused.deleted) == (True, 1, 3, 0)
    assert len(log.public()) == 6
    forced = await run(cms, log, tmp_path, force=True)
    assert (forced.refused, forced.deleted) == (False, 4)
    assert set(log.titles()) == {"en:p3", "en:p4"}


async def test_a_cms_that_lists_nothing_deletes_nothing(cms: FakeSource, log: Log, tmp_path: Path) -> None:
    await run(cms, log, tmp_path)
    cms.pages.clear()
    assert (await run(cms, log, tmp_path)).refused
    assert len(log.public()) == 6


async def test_an_unreadable_page_is_told_and_keeps_its_old_text(cms: FakeSource, log: Log, tmp_path: Path) -> None:
    await run(cms, log, tmp_path)
    cms.save("p0", title="broken")
    cms.unreadable = {"p0"}
    found = await run(cms, log, tmp_path)
    assert (found.failed, found.failures[0].page_id, found.done) == (1, "p0", False)
    assert log.titles()["en:p0"] == "p0"


async def test_a_save_during_a_reconcile_wins_over_its_delete(cms: FakeSource, log: Log, tmp_path: Path) -> None:
    """The page is not listed yet, and its own webhook comes between our look and our delete."""
    await run(cms, log, tmp_path)
    page = cms.pages.pop(("p0", "en"))
    intake = log.intake()
    accept = intake.accept

    async def a_webhook_comes_first(site: str, changes: Any, *more: Any) -> Any:
        if changes[0].op == "delete":
            cms.clock += 1
            back = page.model_copy(update={"revision": cms.clock, "title": "back"})
            await accept(SITE, [Change("upsert", back)], "blog")
        return await accept(site, changes, *more)

    intake.accept = a_webhook_comes_first  # type: ignore[method-assign]
    cms.clock += 1_000
    await reconcile(cms, SITE, "blog", log.opened, intake, tmp_path)
    assert log.titles()["en:p0"] == "back"


async def test_what_came_by_webhook_after_we_looked_at_the_clock_is_not_deleted(
    cms: FakeSource, log: Log, tmp_path: Path
) -> None:
    await run(cms, log, tmp_path)
    await hand_in(log, "upsert", PageDocument(id="fresh", lang="en", revision=cms.clock + 5, title="fresh"))
    found = await run(cms, log, tmp_path)  # the inventory does not list it yet
    assert (found.gone, found.deleted) == (0, 0)
    assert "en:fresh" in log.titles()


async def test_one_at_a_time(cms: FakeSource, log: Log, tmp_path: Path) -> None:
    with alone(tmp_path, SITE, "blog"), pytest.raises(AlreadyRunning):
        await run(cms, log, tmp_path)
    await run(cms, log, tmp_path)


PAGES = ("a", "b", "c", "d")
STEP = st.tuples(st.sampled_from(["save", "remove", "hide", "show", "lost", "reconcile"]), st.sampled_from(PAGES))


@given(steps=st.lists(STEP, max_size=25))
@settings(max_examples=6 * settings().max_examples // 5)
async def test_whatever_was_missed_the_log_ends_like_the_cms(
    steps: list[tuple[str, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Saves and removals whose webhooks come or are lost, pages hidden and shown with their old time, reconciles."""
    cms, log, home = FakeSource(), Log(), tmp_path_factory.mktemp("home")
    hidden: dict[str, PageDocument] = {}
    lost = False
    for what, page_id in steps:
        key = (page_id, "en")
        cms.clock += 1_000
        if what == "lost":
            lost = not lost
        elif what == "reconcile":
            await run(cms, log, home, force=True)
        elif what == "save":
            hidden.pop(page_id, None)
            cms.save(page_id, title=f"{page_id} at {cms.clock}")
            if not lost:
                await hand_in(log, "upsert", cms.pages[key])
        elif what in ("remove", "hide") and key in cms.pages:
            if what == "hide":
                hidden[page_id] = cms.pages[key]
            cms.remove(page_id)
            if not lost:
                await hand_in(log, "delete", PageDocument(id=page_id, lang="en", revision=cms.clock))
        elif what == "show" and page_id in hidden:
            cms.pages[key] = hidden.pop(page_id)
    cms.clock += 1_000
    await run(cms, log, home, force=True)
    assert log.titles() == expected(cms)
    count = len(log.changes)
    await run(cms, log, home, force=True)
    assert len(log.changes) == count
