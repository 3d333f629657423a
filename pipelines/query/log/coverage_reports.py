"""Coverage reports: made in the background, kept for some minutes, one at a time, as gap reports are.

question log ─▶ vectors ─┐
live index ─▶ a vector a page ─┴─▶ placing, in a process of its own ─▶ report, kept

A report holds only pages that whoever it is made for may read: what others would say of those pages is not in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime
from time import monotonic

import structlog

from pipelines.query.log.coverage import coverage
from pipelines.query.log.gaps import Period, wordings
from pipelines.query.log.kept_reports import KeptReports, UnderWay
from pipelines.query.log.placing import Placed
from pipelines.query.log.ports import PageReader, QuestionReader
from pipelines.query.log.question_vectors import vectors_of
from pipelines.query.search.ports import SearchEmbedders
from pipelines.runtime.embedder import Matrix32
from schemas.coverage import CoverageReport

log = structlog.get_logger(__name__)

MOST_QUESTIONS = 10_000  # the newest; some 30 MB
MOST_PAGES = 20_000  # with 384 dimensions 30 MB, with 1,024 80 MB, here and in the process that places them

Place = Callable[[Matrix32, Sequence[str], Matrix32, Sequence[str], Sequence[int], bytes], Awaitable[Placed]]
"""pipelines.query.log.placing.placed, where it keeps nobody waiting (adapters.own_process)."""


class CoverageReports:
    """One per process; close it last.

    Args:
        place: places pages and questions, in another process.
        now: the time that questions are logged by.
        one_at_a_time: shared with whoever else makes reports.
    """

    def __init__(
        self,
        questions: QuestionReader,
        pages: PageReader,
        models: SearchEmbedders,
        place: Place,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        one_at_a_time: asyncio.Lock | None = None,
    ) -> None:
        self._questions = questions
        self._pages = pages
        self._models = models
        self._place = place
        self._now = now
        self._kept = KeptReports[CoverageReport](one_at_a_time or asyncio.Lock(), now)

    async def report(
        self,
        site: str,
        days: float,
        until: datetime | None = None,
        *,
        groups: Iterable[str] | None = (),
        wait: float | None = None,
    ) -> CoverageReport | UnderWay:
        """The site's pages beside what was asked in the `days` before `until` (now).

        Args:
            groups: whose pages are in it beside those for everybody; None: all pages.
            wait: seconds, after which it goes on being made and the caller asks again; None: to its end.

        Raises:
            Retryable. Permanent: of the embedder.
        """
        mine = None if groups is None else frozenset(groups)
        return await self._kept.report(site, (days, until, mine), lambda: self._make(site, days, until, mine), wait)

    async def aclose(self) -> None:
        await self._kept.aclose()

    async def _make(
        self, site: str, days: float, until: datetime | None, groups: frozenset[str] | None
    ) -> CoverageReport:
        period = Period.of_days(days, until or self._now())
        began = monotonic()
        asked = await self._questions.asked(site, period.since, period.until, MOST_QUESTIONS)
        grouped = await asyncio.to_thread(wordings, asked)
        model = await self._models.for_site(site)
        found = await self._pages.vectors(site, model.fingerprint, model.dims, groups, MOST_PAGES)
        vectors, made = await vectors_of(model, grouped)
        placed = await self._place(
            found.vectors,
            [_spoken(page.lang) for page in found.pages],
            vectors,
            [_spoken(wording.lang) for wording in grouped],
            [len(wording.questions) for wording in grouped],
            model.profile.common,
        )
        report = await asyncio.to_thread(
            coverage,
            site,
            period,
            asked,
            grouped,
            vectors,
            found,
            placed,
            made_at=self._now(),
            cut=len(asked) == MOST_QUESTIONS,
        )
        log.info(
            "topics found",
            site=site,
            pages=len(found.pages),
            questions=len(asked),
            embedded=made,
            seconds=round(monotonic() - began, 1),
        )
        return report


def _spoken(lang: str) -> str:
    return lang.partition("-")[0]
