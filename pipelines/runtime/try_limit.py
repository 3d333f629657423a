"""How long one try at a message may take: what it works itself counts, not how long it waits for others.

A page of thousands of chunks needs minutes of the model, and shares it with the pages of all partitions. So a try is
cut off when for so many seconds it has not got on, and what it waits in line for has not either:

    try ── asks the model ── waits in line ── the line moves, moves, its turn ── works ── an answer ── asks again ── ...
                               └ each of these starts its time anew ┘
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Self

TELL_EVERY = 0.5  # seconds; the limits of tries that wait in line are many seconds

_current: ContextVar[TryLimit | None] = ContextVar("try_limit", default=None)


class TryLimit:
    """The time of one try; a context manager around it that raises TimeoutError."""

    def __init__(self, seconds: float, got_on: Callable[[], None] = lambda: None, *, step: float | None = None) -> None:
        """
        Args:
            got_on: called when it begins, and whenever its time starts anew.
            step: seconds of processor time that it may keep the event loop to itself; None: any.
        """
        self._seconds = seconds
        self.step = step
        self._got_on = got_on
        self._timeout = asyncio.timeout(seconds)
        self._open = False

    async def __aenter__(self) -> Self:
        await self._timeout.__aenter__()
        self._open = True
        self._token = _current.set(self)
        self._got_on()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, err: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open = False
        _current.reset(self._token)
        await self._timeout.__aexit__(kind, err, trace)

    @property
    def open(self) -> bool:
        """Whether the try is under way: tasks that it has started may outlive it."""
        return self._open

    def expired(self) -> bool:
        """Whether it has cut the try off."""
        return self._timeout.expired()

    def progressed(self) -> None:
        """The try has got on, or the line in which it waits: its time starts anew."""
        if self._open and not self._timeout.expired():
            self._timeout.reschedule(asyncio.get_running_loop().time() + self._seconds)
            self._got_on()


class Line:
    """Something that tries wait for together, such as a model: one call that ends is progress for all of them."""

    def __init__(self) -> None:
        self._waiting: Counter[TryLimit] = Counter()
        self._told = 0.0  # loop time

    @contextmanager
    def place(self) -> Iterator[None]:
        """While the call waits or is at work; leaving without an error tells all who wait that the line has moved."""
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
        if now >= self._told + TELL_EVERY:
            self._told = now
            for waiting in self._waiting:
                waiting.progressed()


def progressed() -> None:
    """Tell the try in which this is called that it has got on; outside of one (a rebuild, a command) nothing."""
    if (limit := _current.get()) is not None:
        limit.progressed()


def step_limit() -> float | None:
    """Seconds of processor time that one step of the try in which this is called may take; None: any, or no try."""
    limit = _current.get()
    return limit.step if limit is not None and limit.open else None
