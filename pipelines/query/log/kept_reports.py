"""Reports that take a while: made in the background, kept for some minutes, one at a time.

asked for ─▶ there, or under way? ─ no ─▶ a task makes it, once those before it are done
                └ yes ─▶ whoever asks waits with the others, or asks again
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
        one_at_a_time: whoever holds it makes a report: each takes a core and up to some 300 MB.
        now: the time that is told of a report under way.
    """

    def __init__(self, one_at_a_time: asyncio.Lock, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._one_at_a_time = one_at_a_time
        self._now = now
        self._works: dict[Hashable, _Work[R]] = {}

    async def report(
        self, key: Hashable, name: str, make: Callable[[], Awaitable[R]], wait: float | None = None
    ) -> R | UnderWay:
        """The report of this key, made if it is not there.

        Args:
            name: of the task.
            wait: seconds, after which it goes on being made and the caller asks again; None: to its end.

        Raises: as `make`.
        """
        self._forget()
        work = self._works.get(key)
        if work is None:
            task = asyncio.create_task(self._made(make), name=name)
            work = self._works[key] = _Work(task, self._now())
            task.add_done_callback(lambda done: self._done(key, done))
        done, _ = await asyncio.wait([work.task], timeout=wait)
        return work.task.result() if done else UnderWay(work.began_at)

    async def aclose(self) -> None:
        for work in list(self._works.values()):
            work.task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await work.task

    async def _made(self, make: Callable[[], Awaitable[R]]) -> R:
        async with self._one_at_a_time:
            return await make()

    def _done(self, key: Hashable, task: asyncio.Task[R]) -> None:
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
