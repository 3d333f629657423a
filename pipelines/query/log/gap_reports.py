"""Gap reports: made in the background, kept for some minutes, one at a time.

question log ─▶ vectors: kept with the questions, else made now ─▶ grouping, in a process of its own ─▶ report, kept

A vector comes with the question: it was searched by it (schemas.outcome.Outcome.vector), and embedding 10,000 questions
again takes a minute. Made here are those of questions that were masked, failed before they were searched, are older
than vectors in the log, or were searched by another model than the live index has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime
from time import monotonic

import numpy as np
import structlog

from pipelines.query.log.gaps import Period, Wording, report, wordings
from pipelines.query.log.grouping import Numbers
from pipelines.query.log.kept_reports import KeptReports, UnderWay
from pipelines.query.log.ports import QuestionReader
from pipelines.query.log.readable import PageRights, ReadableQuestions
from pipelines.query.search.ports import SearchEmbedder, SearchEmbedders
from pipelines.runtime.embedder import Matrix32
from schemas.gaps import GapReport

log = structlog.get_logger(__name__)

MOST_READ = 20_000  # questions of both periods, the newest; some 60 MB

Group = Callable[[Matrix32, Sequence[str], Sequence[int], bytes], Awaitable[Numbers]]
"""pipelines.query.log.grouping.grouped, where it keeps nobody waiting (adapters.own_process)."""


class GapReports:
    """One per process; close it last.

    Args:
        rights: tell which pages found for a question may be named.
        group: groups vectors, in another process.
        now: the time that questions are logged by.
        one_at_a_time: shared with the other makers of reports.
    """

    def __init__(
        self,
        questions: QuestionReader,
        rights: PageRights,
        models: SearchEmbedders,
        group: Group,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        one_at_a_time: asyncio.Lock | None = None,
    ) -> None:
        self._questions = questions
        self._rights = rights
        self._models = models
        self._group = group
        self._now = now
        self._kept = KeptReports[GapReport](one_at_a_time or asyncio.Lock(), now)

    async def report(
        self,
        site: str,
        days: float,
        until: datetime | None = None,
        *,
        groups: Iterable[str] | None = (),
        wait: float | None = None,
    ) -> GapReport | UnderWay:
        """What was asked and missed in the `days` before `until` (now) and in as many before these.

        Args:
            groups: whose pages are named beside those for everybody; None: all pages.
            wait: seconds, after which it goes on being made and the caller asks again; None: to its end.

        Raises: Retryable. Permanent: of the embedder.
        """
        mine = None if groups is None else frozenset(groups)
        return await self._kept.report(site, (days, until, mine), lambda: self._make(site, days, until, mine), wait)

    async def aclose(self) -> None:
        await self._kept.aclose()

    async def _make(self, site: str, days: float, until: datetime | None, groups: frozenset[str] | None) -> GapReport:
        period = Period.of_days(days, until or self._now())
        began = monotonic()
        readable = ReadableQuestions(self._questions, self._rights, groups) if groups is not None else self._questions
        asked = await readable.asked(site, period.before, period.until, MOST_READ)
        grouped = await asyncio.to_thread(wordings, asked)
        model = await self._models.for_site(site)
        vectors, made = await vectors_of(model, grouped)
        often = [len(wording.questions) for wording in grouped]
        langs = [wording.lang.partition("-")[0] for wording in grouped]
        numbers = await self._group(vectors, langs, often, model.profile.common)
        found = await asyncio.to_thread(
            report,
            site,
            period,
            asked,
            grouped,
            vectors,
            numbers,
            made_at=self._now(),
            cut=len(asked) == MOST_READ,
        )
        seconds = round(monotonic() - began, 1)
        log.info("questions grouped", site=site, questions=len(asked), embedded=made, seconds=seconds)
        return found


async def vectors_of(model: SearchEmbedder, wordings: Sequence[Wording]) -> tuple[Matrix32, int]:
    """A row a wording, and how many had to be made. One after the other: visitors' questions go in between.

    Raises: Retryable. Permanent: of the embedder.
    """
    rows, made = np.empty((len(wordings), model.dims), dtype=np.float32), 0
    for place, wording in enumerate(wordings):
        kept = (one.vector for one in wording.questions if one.vector and one.vector.model == model.fingerprint)
        known = next((each for each in kept if len(each.data) == model.dims), None)
        if known is not None:
            rows[place] = known.vector
        else:
            rows[place] = await model.query(wording.text)
            made += 1
        if not place % 500:
            await asyncio.sleep(0)
    return rows, made
