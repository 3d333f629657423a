"""Gap reports: made in the background, kept for some minutes, one at a time.

question log ─▶ vectors: kept with the questions, else made now ─▶ grouping, in a process of its own ─▶ report, kept

A vector comes with the question: it was searched by it (schemas.outcome.Outcome.vector), and embedding 10,000 questions
again takes a minute. Made here are those of questions that were masked, failed before they were searched, are older
than vectors in the log, or were searched by another model than the live index has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic

import numpy as np
import structlog

from pipelines.query.log.gaps import Period, Wording, report, wordings
from pipelines.query.log.grouping import Numbers
from pipelines.query.log.ports import QuestionReader
from pipelines.query.retrieve.ports import SearchEmbedder, SearchEmbedders
from pipelines.runtime.embedder import Matrix32
from schemas.gaps import GapReport

log = structlog.get_logger(__name__)

MOST_READ = 20_000  # questions of both periods, the newest; some 60 MB
KEPT = 300.0  # seconds that a report is as good as a new one
KEPT_REPORTS = 20

Group = Callable[[Matrix32, Sequence[str], Sequence[int], bytes], Awaitable[Numbers]]
"""pipelines.query.log.grouping.grouped, where it keeps nobody waiting (adapters.own_process)."""

Key = tuple[str, float, datetime | None]


@dataclass
class _Work:
    """A report that is being made, or is there."""

    task: asyncio.Task[GapReport]
    began_at: datetime
    ready_at: float | None = None


@dataclass(frozen=True)
class UnderWay:
    """The report is still being made."""

    began_at: datetime


class GapReports:
    """One per process; close it last.

    Args:
        group: groups vectors, in another process.
        now: the time that questions are logged by.
    """

    def __init__(
        self,
        questions: QuestionReader,
        models: SearchEmbedders,
        group: Group,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._questions = questions
        self._models = models
        self._group = group
        self._now = now
        self._works: dict[Key, _Work] = {}
        self._one_at_a_time = asyncio.Lock()  # each takes a core and up to some 300 MB

    async def report(
        self, site: str, days: float, until: datetime | None = None, *, wait: float | None = None
    ) -> GapReport | UnderWay:
        """What was asked and missed in the `days` before `until` (now) and in as many before these.

        Args:
            wait: seconds, after which it goes on being made and the caller asks again; None: to its end.

        Raises:
            Retryable. Permanent: of the embedder.
        """
        self._forget()
        key = (site, days, until)
        work = self._works.get(key)
        if work is None:
            task = asyncio.create_task(self._make(site, days, until), name=f"gaps of {site}")
            work = self._works[key] = _Work(task, self._now())
            task.add_done_callback(lambda done: self._done(key, done))
        done, _ = await asyncio.wait([work.task], timeout=wait)
        return work.task.result() if done else UnderWay(work.began_at)

    async def aclose(self) -> None:
        for work in list(self._works.values()):
            work.task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await work.task

    def _done(self, key: Key, task: asyncio.Task[GapReport]) -> None:
        work = self._works[key]
        work.ready_at = monotonic()
        if task.cancelled() or task.exception() is not None:  # whoever waits is told; who comes later tries again
            del self._works[key]

    def _forget(self) -> None:
        """Reports that are too old, and the oldest of too many."""
        ready = sorted(((work.ready_at, key) for key, work in self._works.items() if work.ready_at), key=lambda e: e[0])
        for place, (at, key) in enumerate(ready):
            if monotonic() - at > KEPT or place < len(ready) - KEPT_REPORTS:
                del self._works[key]

    async def _make(self, site: str, days: float, until: datetime | None) -> GapReport:
        async with self._one_at_a_time:
            period = Period.of_days(days, until or self._now())
            began = monotonic()
            asked = await self._questions.asked(site, period.before, period.until, MOST_READ)
            grouped = await asyncio.to_thread(wordings, asked)
            model = await self._models.for_site(site)
            vectors, made = await self._vectors(model, grouped)
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

    async def _vectors(self, model: SearchEmbedder, grouped: Sequence[Wording]) -> tuple[Matrix32, int]:
        """A row a wording, and how many had to be made. One after the other: visitors' questions go in between."""
        rows, made = np.empty((len(grouped), model.dims), dtype=np.float32), 0
        for place, wording in enumerate(grouped):
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
