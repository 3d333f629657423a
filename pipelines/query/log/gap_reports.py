"""Gap reports: made in the background, kept for some minutes, one at a time.

question log ─▶ vectors: kept with the questions, else made now ─▶ grouping, in a process of its own ─▶ report, kept

A vector comes with the question: it was searched by it (schemas.outcome.Outcome.vector), and embedding 10,000 questions
again takes a minute. Made here are those of questions that were masked, failed before they were searched, are older
than vectors in the log, or were searched by another model than the live index has.

Reports that take a while: made in the background, kept for some minutes, one at a time.

asked for ─▶ there, or one of this site under way? ─ no ─▶ a task makes it, once those of other sites before it are done
                └ yes ─▶ the caller waits with the others, or asks again

A site has one under way, whatever its readers ask for: a heap of theirs would keep the readers of all others waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic
from typing import Generic, TypeVar

import numpy as np
import structlog

from pipelines.query.log.gaps import Period, Wording, report, wordings
from pipelines.query.log.grouping import Numbers
from pipelines.query.log.ports import QuestionReader
from pipelines.query.log.readable import PageRights, ReadableQuestions
from pipelines.query.search.ports import SearchEmbedder, SearchEmbedders
from pipelines.runtime.embedder import Matrix32
from schemas.gaps import GapReport

R = TypeVar("R")

KEPT = 300.0  # seconds that a report is as good as a new one
KEPT_REPORTS = 20


@dataclass
class _Work(Generic[R]):
    """A report that is being made, or is there."""

    key: Hashable
    task: asyncio.Task[R]
    began_at: datetime
    ready_at: float | None = None


@dataclass(frozen=True)
class UnderWay:
    """The report is still being made."""

    began_at: datetime


class KeptReports(Generic[R]):
    """One kind of them. One per process; close it last.

    Args:
        one_at_a_time: held while a report is made: each takes a core and up to some 300 MB.
        now: the time that a report under way shows.
    """

    def __init__(self, one_at_a_time: asyncio.Lock, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._one_at_a_time = one_at_a_time
        self._now = now
        self._works: dict[tuple[str, Hashable], _Work[R]] = {}

    async def report(
        self, site: str, key: Hashable, make: Callable[[], Awaitable[R]], wait: float | None = None
    ) -> R | UnderWay:
        """The site's report of this key, made if it is not there.

        Args:
            wait: seconds, after which it goes on being made and the caller asks again; None: to its end. Where another
                of the site is under way, this one is begun after it, if the caller still waits then.

        Raises: as `make`.
        """
        until = None if wait is None else monotonic() + wait
        while True:
            self._forget()
            waiting = (work for (of, _), work in self._works.items() if of == site and work.ready_at is None)
            under_way = next(waiting, None)
            work = self._works.get((site, key)) or under_way or self._begin(site, key, make)
            done, _ = await asyncio.wait([work.task], timeout=None if until is None else max(0.0, until - monotonic()))
            if not done:
                return UnderWay(work.began_at)
            if work.key == key:
                return work.task.result()

    async def aclose(self) -> None:
        for work in list(self._works.values()):
            work.task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await work.task

    def _begin(self, site: str, key: Hashable, make: Callable[[], Awaitable[R]]) -> _Work[R]:
        async def made() -> R:
            async with self._one_at_a_time:
                return await make()

        task = asyncio.create_task(made(), name=f"a report of {site}")
        work = self._works[site, key] = _Work(key, task, self._now())
        task.add_done_callback(lambda done: self._done((site, key), done))
        return work

    def _done(self, place: tuple[str, Hashable], task: asyncio.Task[R]) -> None:
        work = self._works[place]
        work.ready_at = monotonic()
        if task.cancelled() or task.exception() is not None:  # those who wait get the error; a later call tries again
            del self._works[place]

    def _forget(self) -> None:
        """Reports that are too old, and the oldest of too many."""
        ready = sorted(((work.ready_at, at) for at, work in self._works.items() if work.ready_at), key=lambda e: e[0])
        for number, (when, place) in enumerate(ready):
            if monotonic() - when > KEPT or number < len(ready) - KEPT_REPORTS:
                del self._works[place]


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
