"""`pagewire index rebuild --all`, `--sites`: which sites, how many at once, and what is told of each."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from cli.output import NO_SERVICE, NOT_SO
from cli.rebuild_steps import Fleet, SiteRebuildOutcome, print_fleet, some_at_a_time
from cli.wired import NoSuchSites
from schemas.rebuild import Rebuild
from tests.making import NOON
from tests.unit.cli.test_commands import empty_home, run
from wiring.settings import Settings, SiteSettings

__all__ = ["empty_home"]

SITES = ["a", "b", "c", "d", "e"]


def made(site: str, state: str = "live") -> SiteRebuildOutcome:
    index = f"pagewire-{site}-000002"
    rebuild = Rebuild(
        site=site, generation=2, index=index, source="changes", follows="changes", embedder="fake", model="fake-4",
        dims=4, chunker="c", state=state, pages=1_200, chunks=3_400, created_at=NOON, updated_at=NOON,
    )  # fmt: skip
    return SiteRebuildOutcome(site, "live", rebuild)


def test_sites_are_chosen_by_their_names() -> None:
    settings = Settings(sites=dict.fromkeys(("shop-b", "shop-a", "town"), SiteSettings()))
    assert Fleet("*", 2, False).names(settings) == ["shop-a", "shop-b", "town"]
    assert Fleet("shop-*", 2, False).names(settings) == ["shop-a", "shop-b"]
    with pytest.raises(NoSuchSites, match=r"called like 'SHOP-\*'"):
        Fleet("SHOP-*", 2, False).names(settings)


async def test_so_many_are_worked_on_side_by_side_and_one_that_fails_keeps_no_other_from_its_turn() -> None:
    now, most = set[str](), 0

    async def one(site: str) -> SiteRebuildOutcome:
        nonlocal most
        now.add(site)
        most = max(most, len(now))
        for _ in range(5):
            await asyncio.sleep(0)
        now.discard(site)
        return SiteRebuildOutcome(site, "failed", why="no") if site == "b" else made(site)

    came = await some_at_a_time(SITES, 2, one)
    assert [(done.site, done.outcome) for done in came] == [
        ("a", "live"), ("b", "failed"), ("c", "live"), ("d", "live"), ("e", "live"),
    ]  # fmt: skip
    assert most == 2


async def test_none_is_begun_any_more_when_a_service_is_away() -> None:
    async def one(site: str) -> SiteRebuildOutcome:
        return SiteRebuildOutcome(site, "failed", why="Kafka does not answer", away=site == "b")

    came = await some_at_a_time(SITES, 1, one)
    assert [done.outcome for done in came] == ["failed", "failed", "not begun", "not begun", "not begun"]


async def test_who_stops_it_stops_all() -> None:
    begun, stopped = list[str](), list[str]()

    async def one(site: str) -> SiteRebuildOutcome:
        begun.append(site)
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(site)
        raise AssertionError

    task = asyncio.create_task(some_at_a_time(SITES, 2, one))
    while len(begun) < 2:  # noqa: ASYNC110  # nothing announces it
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert sorted(stopped) == ["a", "b"]


def test_a_table_says_what_came_of_each_and_the_exit_code_whether_all_is_well(
    capsys: pytest.CaptureFixture[str],
) -> None:
    failed = SiteRebuildOutcome("b", "failed", why="pagewire-b-000002 is not what the log says", code="not-verified")
    assert print_fleet([made("a"), SiteRebuildOutcome("c", "as wanted")], json=False) == 0
    said = capsys.readouterr().out
    assert "pagewire-a-000002    1,200   3,400" in said
    assert "1 live, 1 as wanted" in said
    assert print_fleet([made("a"), failed], json=True) == NOT_SO
    one, other = json.loads(capsys.readouterr().out)["sites"]
    assert (one["site"], one["outcome"], one["rebuild"]["chunks"]) == ("a", "live", 3_400)
    assert (other["code"], other["why"], other["rebuild"]) == (
        "not-verified", "pagewire-b-000002 is not what the log says", None,
    )  # fmt: skip
    assert (
        print_fleet([SiteRebuildOutcome("a", "failed", away=True), SiteRebuildOutcome("b", "not begun")], json=True)
        == NO_SERVICE
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "name one site"),
        (("demo", "--all"), "name one site"),
        (("--all", "--sites", "d*"), "name one site"),
        (("--all", "--gate", "questions.yaml"), "--gate is for one site"),
        (("--sites", "nobody-*"), "no site is called like 'nobody-*'; there are: demo"),
        (("--all", "--at-once", "0"), "--at-once"),
    ],
    ids=" ".join,
)
def test_bad_options_are_wrong_use(options: tuple[str, ...], said: str, empty_home: Path) -> None:
    (empty_home / "questions.yaml").write_text("[]")
    result = run("rebuild", "--from", "changes", *options)
    assert result.exit_code == 2, result.output
    assert said in result.stderr.replace("\n│ ", "")


@pytest.fixture(autouse=True)
def _not_nice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.generations.give_way", lambda by: None)
