"""Coverage reports as a service: of the pages that the caller may read, one report at a time, kept for a while."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any

import pytest

from adapters.elastic.client import ElasticsearchDown
from adapters.embedders.fake import FakeEmbedder
from adapters.fake_outcomes import FakeOutcomes
from adapters.fake_page_vectors import FakePageVectors
from pipelines.query.log import coverage_reports
from pipelines.query.log.coverage_reports import CoverageReports
from pipelines.query.log.kept_reports import UnderWay
from pipelines.query.log.placing import Placed, placed
from pipelines.query.log.ports import SitePage
from pipelines.runtime.embedder import Matrix32
from schemas.coverage import CoverageReport
from schemas.outcome import Outcome, OutcomeEvent
from tests.asking import NOON


class Models:
    """One model for all sites."""

    def __init__(self) -> None:
        self.model = FakeEmbedder()

    async def for_site(self, site: str) -> FakeEmbedder:
        return self.model


class Town:
    """A log, pages, and reports of them."""

    def __init__(self) -> None:
        self.log, self.pages, self.models = FakeOutcomes(), FakePageVectors(), Models()
        self.may = asyncio.Event()
        self.may.set()
        self.placed = 0
        self.one_at_a_time = asyncio.Lock()
        self.reports = CoverageReports(
            self.log, self.pages, self.models, self._place, lambda: NOON, one_at_a_time=self.one_at_a_time
        )

    async def _place(self, *given: Any) -> Placed:
        self.placed += 1
        await self.may.wait()
        return placed(*given)

    async def asked(self, n: int, text: str, days: float = 1) -> None:
        said = Outcome(
            asked_at=NOON - timedelta(days=days), asked_in="en", lang="en", question=text, rephrased=text,
            became="refused",
        )  # fmt: skip
        await self.log.put(OutcomeEvent(site="town", request_id=f"request-{n:04}", conversation="c1", event=said))

    async def page(self, id: str, text: str, groups: Sequence[str] | None = None) -> None:
        chunks: Matrix32 = await self.models.model.passages([text])
        self.pages.put("town", SitePage(id, "en", id.title(), f"/{id}"), chunks, groups)

    async def report(self, days: float = 30, **more: Any) -> CoverageReport:
        made = await self.reports.report("town", days, **more)
        assert isinstance(made, CoverageReport)
        return made


@pytest.fixture
async def town() -> AsyncIterator[Town]:
    made = Town()
    await made.page("pool", "The pool opens at nine.")
    await made.page("board", "The board meets on Mondays.", groups=("staff",))
    await made.asked(1, "Is there a sauna?")
    await made.asked(2, "An ice rink?", days=40)
    yield made
    await made.reports.aclose()


async def test_pages_are_those_that_the_caller_may_read(town: Town) -> None:
    stranger, staff, everything = [await town.report(groups=groups) for groups in ((), ("staff",), None)]
    assert (stranger.pages, stranger.hidden) == (1, 1)
    assert "board" not in stranger.model_dump_json().lower()
    assert (staff.pages, staff.hidden, everything.pages, everything.hidden) == (2, 0, 2, 0)
    assert await town.report(groups=()) is stranger
    assert await town.report(groups=["staff"]) is staff


async def test_the_period_alone_is_read(town: Town) -> None:
    assert [(await town.report(days)).asked for days in (30, 60)] == [1, 2]


async def test_very_many_are_cut_and_that_is_told(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not (await town.report()).questions_cut
    monkeypatch.setattr(coverage_reports, "MOST_QUESTIONS", 1)
    monkeypatch.setattr(coverage_reports, "MOST_PAGES", 1)
    made = await town.report(60, groups=None)
    assert (made.questions_cut, made.pages_cut, made.asked, made.pages) == (True, True, 1, 1)


async def test_whoever_does_not_want_to_wait_asks_again(town: Town) -> None:
    town.may.clear()
    assert await town.reports.report("town", 30, wait=0.01) == UnderWay(NOON)
    town.may.set()
    assert (await town.report()).asked == 1
    assert town.placed == 1


async def test_another_report_at_work_is_waited_for(town: Town) -> None:
    async with town.one_at_a_time:
        assert await town.reports.report("town", 30, wait=0.05) == UnderWay(NOON)
        assert town.placed == 0
    assert (await town.report()).asked == 1


async def test_what_failed_is_told_and_tried_again(town: Town) -> None:
    town.log.error = ElasticsearchDown("away")
    with pytest.raises(ElasticsearchDown):
        await town.report()
    town.log.error = None
    assert (await town.report()).asked == 1
