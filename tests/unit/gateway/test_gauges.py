"""Gauges say what the servers say, and nothing when those say nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from prometheus_client import REGISTRY

from gateway import gauges
from gateway.gauges import StatusGauges
from schemas.http import SiteStatus, StageStatus, SystemStatus

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
FINE = SystemStatus(
    at=NOW,
    kafka=True,
    elasticsearch=True,
    stages=(StageStatus(stage="chunk", topic="cms.changes", lag=7, rate=1.5, members=2, dead_letters=3),),
    sites=(
        SiteStatus(site="town", pages=40, chunks=90, freshness_p50_ms=250, freshness_p95_ms=1500, embedder="lite"),
        SiteStatus(site="new", pages=0, chunks=0, freshness_p50_ms=None, freshness_p95_ms=None, embedder=None),
    ),
)
AWAY = SystemStatus(at=NOW, kafka=False, elasticsearch=True, stages=(), sites=())


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
    await StatusGauges(ScriptedStatus(FINE)).refresh()
    assert value("pagewire_service_up", service="kafka") == 1
    assert value("pagewire_lag_messages", stage="chunk") == 7
    assert value("pagewire_workers", stage="chunk") == 2
    assert value("pagewire_kept_dead_letters", stage="chunk") == 3
    assert value("pagewire_pages", site="town") == 40
    assert value("pagewire_freshness_seconds", site="town", quantile="0.5") == 0.25
    assert value("pagewire_freshness_seconds", site="town", quantile="0.95") == 1.5
    assert value("pagewire_freshness_seconds", site="new", quantile="0.5") is None


async def test_what_is_not_known_any_more_shows_no_old_figure() -> None:
    gauges.show(FINE)
    gauges.show(AWAY)
    assert value("pagewire_service_up", service="kafka") == 0
    assert value("pagewire_lag_messages", stage="chunk") is None
    assert value("pagewire_pages", site="town") is None


async def test_servers_are_asked_once_however_many_look() -> None:
    status = ScriptedStatus(FINE)
    shown = StatusGauges(status)
    await asyncio.gather(*(shown.refresh() for _ in range(5)))
    assert status.asked == 1


async def test_no_answer_in_time_is_no_figure_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gauges, "TIMEOUT", 0.01)
    gauges.show(FINE)
    await StatusGauges(ScriptedStatus(None)).refresh()
    assert value("pagewire_service_up", service="kafka") is None
    assert value("pagewire_lag_messages", stage="chunk") is None
