"""Runs a coroutine on a loop whose time does not have to be waited for: when nothing else is to do, it skips ahead.

So limits of many seconds are tried as they are, in no time. For code that waits for tasks and timers alone: a thread, a
process or a socket that is waited for would find its time limit over at once.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    """Returns at once, and notes for how long it was to wait."""

    skipped = 0.0  # seconds

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            assert timeout is not None, "everything waits, and no timer is set"
            self.skipped += timeout
        return ready


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._skips = _Selector()
        super().__init__(self._skips)

    def time(self) -> float:
        return super().time() + self._skips.skipped


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """What it returns. `asyncio.get_running_loop().time()` tells the time that it thinks has passed."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(coroutine)
