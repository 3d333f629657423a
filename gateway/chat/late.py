"""A limit of time for what is begun thousands of times a second and hardly ever takes long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import inf


class Late:
    """Calls `ring` when the time that was last set has come. Setting and clearing cost an assignment: the loop's own
    timer is left where it is, and looks again when it goes off. To be closed in the end.
    """

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._loop = asyncio.get_running_loop()
        self._at = inf
        self._timer: asyncio.TimerHandle | None = None

    def set(self, seconds: float) -> None:
        """Ring after so many seconds, in place of what was set before."""
        self._at = self._loop.time() + seconds
        if self._timer is None:
            self._timer = self._loop.call_at(self._at, self._look)
        elif self._timer.when() > self._at:
            self._timer.cancel()
            self._timer = self._loop.call_at(self._at, self._look)

    def clear(self) -> None:
        """It came in time."""
        self._at = inf

    def close(self) -> None:
        self._at = inf
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        assert self._timer is not None
        due, self._timer = self._timer.when(), None
        if self._at <= due:
            self._at = inf
            self._ring()
        elif self._at < inf:
            self._timer = self._loop.call_at(self._at, self._look)
