"""Gap reports as a service: vectors from the log or the model, one report at a time, kept for a while."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta

import numpy as np
import pytest

from adapters.elastic.client import ElasticsearchDown
from pipelines.query.log import gap_reports
from pipelines.query.log.gap_reports import GapReports, UnderWay
from pipelines.query.log.grouping import Numbers, grouped
from pipelines.runtime.embedder import Matrix32
from schemas.gaps import GapReport
from schemas.outcome import Outcome, OutcomeEvent
from schemas.query import QuestionVector
from tests.asking import NOON
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.outcomes import FakeOutcomes
from tests.fakes.ports import FakeIndexedPages


class Models:
    """One model for all sites."""

    def __init__(self) -> None:
        self.model = FakeEmbedder()

    async def for_site(self, site: str) -> FakeEmbedder:
        return self.model


class Grouping:
    """Groups when it may; remembers what it was asked for."""

    def __init__(self) -> None:
        self.may = asyncio.Event()
        self.may.set()
        self.vectors: list[Matrix32] = []

    async def __call__(self, vectors: Matrix32, langs: Sequence[str], asked: Sequence[int], common: bytes) -> Numbers:
        self.vectors.append(vectors)
        await self.may.wait()
        return grouped(vectors, langs, asked, common)


class Town:
    """A log, and reports of it."""

    def __init__(self) -> None:
        self.log, self.models, self.group = FakeOutcomes(), Models(), Grouping()
        self.reports = GapReports(self.log, FakeIndexedPages().readable, self.models, self.group, now=lambda: NOON)

    async def asked(self, n: int, text: str | None, vector: QuestionVector | None = None, days: float = 1) -> None:
        at = NOON - timedelta(days=days)
        said = Outcome(
            asked_at=at, asked_in="en", lang="en", question=text, rephrased=text, became="refused", vector=vector
        )
        event = OutcomeEvent(site="town", request_id=f"request-{n:04}", conversation="c1", event=said)
        await self.log.put(event)

    async def report(self, days: float = 30, until: datetime | None = None, site: str = "town") -> GapReport:
        made = await self.reports.report(site, days, until)
        assert isinstance(made, GapReport)
        return made


@pytest.fixture
async def town() -> AsyncIterator[Town]:
    made = Town()
    yield made
    await made.reports.aclose()


async def test_vectors_come_from_the_log_where_it_has_them_of_this_model(town: Town) -> None:
    model = town.models.model
    there = QuestionVector.of(model.fingerprint, np.eye(model.dims, dtype=np.float32)[5])
    await town.asked(1, "Is there a sauna?", there)
    await town.asked(2, "is there a sauna", None)
    await town.asked(3, "Any sauna?", QuestionVector.of("another-64", np.ones(64, np.float32) / 8))
    await town.asked(4, "A rink?")
    await town.asked(5, None)
    made = await town.report()
    assert model.asked == ["A rink?", "Any sauna?"] or model.asked == ["Any sauna?", "A rink?"]
    [vectors] = town.group.vectors
    assert sorted(float(row[5]) for row in vectors)[-1] == pytest.approx(1)
    assert (made.counts.asked, made.counts.without_words) == (5, 1)


async def test_the_periods_are_read_and_no_more(town: Town) -> None:
    for n, days in enumerate((0.5, 6.9, 7.1, 13.9, 14.1)):
        await town.asked(n, "A rink?", days=days)
    made = await town.report(7)
    assert (made.counts.asked, made.counts_before.asked, made.total) == (2, 2, 1)
    earlier = await town.report(7, NOON - timedelta(days=7))
    assert (earlier.counts.asked, earlier.counts_before.asked) == (2, 1)
    assert (earlier.until, earlier.made_at) == (NOON - timedelta(days=7), NOON)


async def test_of_very_many_questions_the_newest_are_read(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gap_reports, "MOST_READ", 2)
    for n in range(3):
        await town.asked(n, f"Rink {n}?", days=n + 1)
    made = await town.report()
    assert (made.cut, made.counts.asked) == (True, 2)
    assert {group.label for group in made.groups} <= {"Rink 0?", "Rink 1?"}


async def test_whoever_does_not_want_to_wait_asks_again(town: Town) -> None:
    await town.asked(1, "A rink?")
    town.group.may.clear()
    first = await town.reports.report("town", 30, wait=0.01)
    assert first == UnderWay(NOON)
    town.group.may.set()
    assert (await town.report()).total == 1
    assert len(town.group.vectors) == 1


async def test_a_report_is_kept_for_a_while(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    await town.asked(1, "A rink?")
    first = await town.report()
    await town.asked(2, "A sauna?")
    assert await town.report() is first
    assert (await town.report(31)).counts.asked == 2  # another one
    monkeypatch.setattr(gap_reports, "KEPT", -1.0)
    assert (await town.report()).counts.asked == 2


async def test_reports_are_made_one_at_a_time(town: Town) -> None:
    await town.asked(1, "A rink?")
    town.group.may.clear()
    both = [asyncio.create_task(town.report(site=site)) for site in ("town", "other")]
    done, _ = await asyncio.wait(both, timeout=0.1)
    assert not done
    assert len(town.group.vectors) == 1
    town.group.may.set()
    assert [made.total for made in await asyncio.gather(*both)] == [1, 0]


async def test_a_site_has_one_under_way_whatever_is_asked_for(town: Town) -> None:
    await town.asked(1, "A rink?")
    town.group.may.clear()
    for days in range(1, 40):
        assert await town.reports.report("town", days, wait=0) == UnderWay(NOON)
    waits, other = asyncio.create_task(town.report(30)), asyncio.create_task(town.report(site="other"))
    town.group.may.set()
    assert [made.total for made in await asyncio.gather(waits, other)] == [1, 0]
    assert len(town.group.vectors) == 3  # of one day, of thirty, of the other site


async def test_what_failed_is_told_and_tried_again(town: Town) -> None:
    await town.asked(1, "A rink?")
    town.log.error = ElasticsearchDown("away")
    with pytest.raises(ElasticsearchDown):
        await town.report()
    town.log.error = None
    assert (await town.report()).total == 1


async def test_a_site_that_nobody_has_asked_has_an_empty_report(town: Town) -> None:
    made = await town.report()
    assert (made.groups, made.total, made.counts.asked) == ((), 0, 0)
