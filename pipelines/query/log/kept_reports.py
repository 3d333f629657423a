"""Reports that take a while: made in the background, kept for some minutes, one at a time.

asked for ─▶ there, or one of this site under way? ─ no ─▶ a task makes it, once those of other sites before it are done
                └ yes ─▶ the caller waits with the others, or asks again

A site has one under way, whatever its readers ask for: a heap of theirs would keep the readers of all others waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic
from typing import Generic, TypeVar

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
