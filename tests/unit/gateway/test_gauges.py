"""Gauges say what the servers say, and nothing when those say nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from prometheus_client import REGISTRY

from gateway.edge import gauges
from gateway.edge.gauges import StatusGauges
from pipelines.runtime.errors import Retryable
from schemas.http import SiteStatus, StageStatus, SystemStatus
from tests.fakes.ports import FakeLetters
from tests.making import letter
from wiring.settings import Settings, SiteSettings

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
FINE = SystemStatus(
    at=NOW,
    kafka=True,
    elasticsearch=True,
    stages=(
        StageStatus(stage="chunk", lane="save", topic="cms.changes", lag=7, rate=1.5, members=2, dead_letters=3),
        StageStatus(stage="chunk", lane="bulk", topic="cms.changes", lag=900, rate=9, members=1, dead_letters=0),
        StageStatus(stage="answer", topic="query.retrieved", lag=4, rate=0, members=1, dead_letters=0),
    ),
    sites=(
        SiteStatus(site="town", pages=40, chunks=90, freshness_p50_ms=250, freshness_p95_ms=1500, embedder="lite"),
        SiteStatus(site="new", pages=0, chunks=0, freshness_p50_ms=None, freshness_p95_ms=None, embedder=None),
    ),
)
AWAY = SystemStatus(at=NOW, kafka=False, elasticsearch=True, stages=(), sites=())
LETTERS = FakeLetters(
    {
        made.letter.id: made
        for made in (
            letter(1),
            letter(2),
            letter(3, topic="ingest.chunks", stage=None, code="unreadable"),
            letter(4, state="dropped"),
        )
    }
)


class ScriptedStatus:
    """Answers with `found`, or never when there is none."""

    def __init__(self, found: SystemStatus | None) -> None:
        self.found = found
        self.asked = 0

    async def status(self) -> SystemStatus:
        self.asked += 1
        if self.found is None:
            await asyncio.Event().wait()
            raise AssertionError
        return self.found

    async def ready(self) -> tuple[bool, dict[str, str]]:
        return True, {}


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    yield
    gauges._clear()


def value(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(name, labels)


async def test_shows_lag_workers_dead_letters_and_freshness_in_seconds() -> None:
    await StatusGauges(ScriptedStatus(FINE), LETTERS, str).refresh()
    assert value("pagewire_service_up", service="kafka") == 1
    lags = {lane: value("pagewire_lag_messages", stage="chunk", lane=lane) for lane in ("save", "bulk")}
    assert lags == {"save": 7, "bulk": 900}
    assert value("pagewire_lag_messages", stage="answer", lane="") == 4
    assert value("pagewire_workers", stage="chunk", lane="save") == 2
    assert value("pagewire_dead_letters_open", stage="chunk", code="bad-message") == 2
    assert value("pagewire_dead_letters_open", stage="", code="unreadable") == 1
    assert value("pagewire_pages", site="town") == 40
    assert value("pagewire_freshness_seconds", site="town", quantile="0.5") == 0.25
    assert value("pagewire_freshness_seconds", site="town", quantile="0.95") == 1.5
    assert value("pagewire_freshness_seconds", site="new", quantile="0.5") is None


async def test_of_too_many_sites_to_tell_apart_it_shows_all_pages_and_the_slowest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pipelines.runtime.settings.LABELLED_SITES", 2)
    slow = FINE.sites[0].model_copy(update={"site": "village", "pages": 2, "freshness_p95_ms": 4000})
    many = FINE.model_copy(update={"sites": (slow, *FINE.sites)})
    label = Settings(sites={site.site: SiteSettings() for site in many.sites}).label
    await StatusGauges(ScriptedStatus(many), LETTERS, label).refresh()
    assert value("pagewire_pages", site="") == 42
    assert value("pagewire_freshness_seconds", site="", quantile="0.5") == 0.25
    assert value("pagewire_freshness_seconds", site="", quantile="0.95") == 4
    assert value("pagewire_pages", site="town") is None


async def test_what_is_not_known_any_more_shows_no_old_figure() -> None:
    gauges.show(FINE, await LETTERS.open_counts(), str)
    gauges.show(AWAY, (), str)
    assert value("pagewire_service_up", service="kafka") == 0
    assert value("pagewire_lag_messages", stage="chunk", lane="save") is None
    assert value("pagewire_pages", site="town") is None


async def test_kafka_gone_between_two_looks_shows_nothing_and_is_no_error() -> None:
    await StatusGauges(ScriptedStatus(FINE), FakeLetters(error=Retryable("gone")), str).refresh()
    assert value("pagewire_service_up", service="kafka") is None


async def test_servers_are_asked_once_however_many_look() -> None:
    status = ScriptedStatus(FINE)
    shown = StatusGauges(status, LETTERS, str)
    await asyncio.gather(*(shown.refresh() for _ in range(5)))
    assert status.asked == 1


async def test_no_answer_in_time_is_no_figure_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gauges, "TIMEOUT", 0.01)
    gauges.show(FINE, await LETTERS.open_counts(), str)
    await StatusGauges(ScriptedStatus(None), LETTERS, str).refresh()
    assert value("pagewire_service_up", service="kafka") is None
    assert value("pagewire_lag_messages", stage="chunk", lane="save") is None
