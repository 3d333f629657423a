"""Gap reports: made in the background, kept for some minutes, one at a time.

question log ─▶ vectors: kept with the questions, else made now ─▶ grouping, in a process of its own ─▶ report, kept

A vector comes with the question: it was searched by it (schemas.outcome.Outcome.vector), and embedding 10,000 questions
again takes a minute. Made here are those of questions that were masked, failed before they were searched, are older
than vectors in the log, or were searched by another model than the live index has.

A report takes a while, so it is made in the background:

asked for ─▶ there, or one of this site under way? ─ no ─▶ a task makes it, once those of other sites before it are done
                └ yes ─▶ the caller waits with the others, or asks again

A site has one under way, whatever its readers ask for: a heap of theirs would keep the readers of all others waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from time import monotonic

import numpy as np
import structlog

from pipelines.query.log.gaps import Period, Wording, report, wordings
from pipelines.query.log.grouping import Numbers
from pipelines.query.log.ports import QuestionReader
from pipelines.query.log.readable import PageRights, ReadableQuestions
from pipelines.query.search.ports import SearchEmbedder, SearchEmbedders
from pipelines.runtime.embedder import Matrix32
from schemas.gaps import GapReport

log = structlog.get_logger(__name__)

KEPT = 300.0  # seconds that a report is as good as a new one
KEPT_REPORTS = 20
MOST_READ = 20_000  # questions of both periods, the newest; some 60 MB

Group = Callable[[Matrix32, Sequence[str], Sequence[int], bytes], Awaitable[Numbers]]
"""pipelines.query.log.grouping.grouped, where it keeps nobody waiting (adapters.own_process)."""

_Key = tuple[float, datetime | None, frozenset[str] | None]  # days, until, groups


@dataclass
class _Work:
    """A report that is being made, or is there."""

    key: _Key
    task: asyncio.Task[GapReport]
    began_at: datetime
    ready_at: float | None = None


@dataclass(frozen=True)
class UnderWay:
    """The report is still being made."""

    began_at: datetime


@dataclass(eq=False)
class GapReports:
    """One per process; close it last.

    Args:
        rights: tell which pages found for a question may be named.
        group: groups vectors, in another process.
        now: the time that questions are logged by.
    """

    questions: QuestionReader
    rights: PageRights
    models: SearchEmbedders
    group: Group
    now: Callable[[], datetime]

    def __post_init__(self) -> None:
        self._works: dict[tuple[str, _Key], _Work] = {}
        self._one_at_a_time = asyncio.Lock()  # each takes a core and up to some 300 MB

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
            wait: seconds, after which it goes on being made and the caller asks again; None: to its end. Where another
                of the site is under way, this one is begun after it, if the caller still waits then.

        Raises: Retryable. Permanent: of the embedder.
        """
        key = days, until, None if groups is None else frozenset(groups)
        end = None if wait is None else monotonic() + wait
        while True:
            self._forget()
            waiting = (work for (of, _), work in self._works.items() if of == site and work.ready_at is None)
            under_way = next(waiting, None)
            work = self._works.get((site, key)) or under_way or self._begin(site, key)
            done, _ = await asyncio.wait([work.task], timeout=None if end is None else max(0.0, end - monotonic()))
            if not done:
                return UnderWay(work.began_at)
            if work.key == key:
                return work.task.result()

    async def aclose(self) -> None:
        for work in list(self._works.values()):
            work.task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await work.task

    def _begin(self, site: str, key: _Key) -> _Work:
        task = asyncio.create_task(self._make(site, *key), name=f"a report of {site}")
        work = self._works[site, key] = _Work(key, task, self.now())
        task.add_done_callback(lambda done: self._done((site, key), done))
        return work

    def _done(self, place: tuple[str, _Key], task: asyncio.Task[GapReport]) -> None:
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

    async def _make(self, site: str, days: float, until: datetime | None, groups: frozenset[str] | None) -> GapReport:
        async with self._one_at_a_time:
            period = Period.of_days(days, until or self.now())
            began = monotonic()
            readable = ReadableQuestions(self.questions, self.rights, groups) if groups is not None else self.questions
            asked = await readable.asked(site, period.before, period.until, MOST_READ)
            grouped = await asyncio.to_thread(wordings, asked)
            model = await self.models.for_site(site)
            vectors, made = await vectors_of(model, grouped)
            often = [len(wording.questions) for wording in grouped]
            langs = [wording.lang.partition("-")[0] for wording in grouped]
            numbers = await self.group(vectors, langs, often, model.profile.common)
            cut = len(asked) == MOST_READ
            found = await asyncio.to_thread(
                report, site, period, asked, grouped, vectors, numbers, made_at=self.now(), cut=cut
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
