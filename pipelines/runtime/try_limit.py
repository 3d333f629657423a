"""Limits the time of one try at a message: its own work counts, waiting for others does not.

A page of thousands of chunks needs minutes of the model, and shares it with the pages of all partitions. So a try is
cancelled only if it, and the queue in which it waits, has made no progress for so many seconds:

    try ── calls the model ── waits in line ── the line moves, moves, its turn ── works ── an answer ── calls again ── …
                                └ each of these restarts the time ┘
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Self

PROGRESS_EVERY = 0.5  # seconds; the limits of waiting tries are many seconds

_current: ContextVar[TryLimit | None] = ContextVar("try_limit", default=None)


class TryLimit:
    """The time of one try; a context manager around it that raises TimeoutError."""

    def __init__(
        self, seconds: float, on_progress: Callable[[], None] = lambda: None, *, step: float | None = None
    ) -> None:
        """
        Args:
            on_progress: called at the begin, and whenever the time restarts.
            step: seconds of processor time for which it may block the event loop; None: no limit.
        """
        self._seconds = seconds
        self.step = step
        self._on_progress = on_progress
        self._timeout = asyncio.timeout(seconds)
        self._open = False

    async def __aenter__(self) -> Self:
        await self._timeout.__aenter__()
        self._open = True
        self._token = _current.set(self)
        self._on_progress()
        return self

    async def __aexit__(self, *error: Any) -> None:
        self._open = False
        _current.reset(self._token)
        await self._timeout.__aexit__(*error)

    @property
    def open(self) -> bool:
        """Whether the try still runs: tasks that it has started may outlive it."""
        return self._open

    def expired(self) -> bool:
        """Whether the limit has cancelled the try."""
        return self._timeout.expired()

    def progressed(self) -> None:
        """Restart the time: the try, or the line in which it waits, has made progress."""
        if self._open and not self._timeout.expired():
            self._timeout.reschedule(asyncio.get_running_loop().time() + self._seconds)
            self._on_progress()


class TryQueue:
    """A queue of tries, for example for a model: the end of one call is progress for all of them."""

    def __init__(self) -> None:
        self._waiting: Counter[TryLimit] = Counter()
        self._last_progress = 0.0  # loop time

    @contextmanager
    def place(self) -> Iterator[None]:
        """Surround a call, with its wait; its end without an error is progress for all waiting tries."""
        limit = _current.get()
        if limit is not None:
            self._waiting[limit] += 1
        try:
            yield
        finally:
            if limit is not None:
                self._waiting[limit] -= 1
                if not self._waiting[limit]:
                    del self._waiting[limit]
        if limit is not None:
            limit.progressed()
        now = asyncio.get_running_loop().time()
        if now >= self._last_progress + PROGRESS_EVERY:
            self._last_progress = now
            for waiting in self._waiting:
                waiting.progressed()


def progressed() -> None:
    """Restart the time of the current try; without one (a rebuild, a command) do nothing."""
    if (limit := _current.get()) is not None:
        limit.progressed()


def step_limit() -> float | None:
    """Seconds of processor time that one step of the current try may take; None: no limit, or no try."""
    limit = _current.get()
    return limit.step if limit is not None and limit.open else None
