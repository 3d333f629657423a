"""Runs a coroutine on an event loop that skips its idle time.

Time limits of many seconds are tested unchanged, without waiting. Only for code that waits for tasks and timers: a
thread, a process or a socket would reach its time limit at once.
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
    """The coroutine's result. `asyncio.get_running_loop().time()` is the skipped time."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(coroutine)
