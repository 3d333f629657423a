"""What several pages may hold at once of something that there is little of, such as a worker's memory.

take(20 MiB) ── waits: saves before imports, then who came first ── holds it ── gives some back, or all ── next
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from pipelines.runtime.try_limit import TryQueue


class MemoryShare:
    """What one holder has taken."""

    def __init__(self, budget: MemoryBudget, size: int) -> None:
        self._budget = budget
        self.size = size

    def shrink(self, size: int) -> None:
        """It needs no more than this: the rest is free for others at once."""
        if size < self.size:
            freed, self.size = self.size - size, size
            self._budget._give_back(freed)


class MemoryBudget:
    """All on one event loop, no locks.

    No holder waits for ever: one that wants more than there is gets it when all others have given theirs back. Waiting
    is no work: each share that is handed out restarts the time of all waiting tries (runtime.try_limit).
    """

    def __init__(self, size: int, holders: int, held: Callable[[int], None] = lambda _: None) -> None:
        """
        Args:
            size: that all together may hold.
            holders: that may hold something.
            held: called with what is held whenever that changes.
        """
        self._size = size
        self._most = holders
        self._held = self._holders = 0
        self._tell = held
        # (what it wants, what wakes it): the urgent ones, and the others
        self._waiting: dict[bool, deque[tuple[int, asyncio.Future[None]]]] = {True: deque(), False: deque()}
        self._line = TryQueue()

    @asynccontextmanager
    async def take(self, size: int, *, urgent: bool = True) -> AsyncIterator[MemoryShare]:
        """Wait for a share of this size, and hold it."""
        with self._line.place():
            await self._wait(size, urgent)
        share = MemoryShare(self, size)
        try:
            yield share
        finally:
            self._holders -= 1
            self._give_back(share.size)

    async def _wait(self, size: int, urgent: bool) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[urgent].append((size, woken))
        self._hand_out()
        try:
            await woken
        except asyncio.CancelledError:
            if woken.done() and not woken.cancelled():  # handed out in the same moment
                self._holders -= 1
                self._give_back(size)
            else:
                self._waiting[urgent].remove((size, woken))
                self._hand_out()  # it may have stood in the way of a smaller one
            raise

    def _hand_out(self) -> None:
        while waiting := self._waiting[True] or self._waiting[False]:
            size, woken = waiting[0]
            if self._holders and (self._held + size > self._size or self._holders >= self._most):
                return
            waiting.popleft()
            self._held += size
            self._holders += 1
            self._tell(self._held)
            woken.set_result(None)

    def _give_back(self, size: int) -> None:
        self._held -= size
        self._tell(self._held)
        self._hand_out()
