"""The servers' clock: one time for all gateways, whatever the clocks of their machines say.

    look: request ──── answer: time T ─▶ T at the middle of the two, plus this machine's steady seconds since

It gives the revision of saves without one, and the deadline of questions. With its own clock, the saves of a gateway an
hour ahead would win over later ones, and the questions of a gateway an hour behind would expire before a worker reads
them. Until the first look succeeds, this machine's own clock is used.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import structlog

from pipelines.runtime.errors import PagewireError
from pipelines.runtime.metrics import CLOCK_AHEAD

log = structlog.get_logger(__name__)

LOOK_EVERY = 60.0  # seconds, in which two steady clocks drift apart by some milliseconds
LOOK_AGAIN = 5.0  # seconds after a look that failed
OFF = timedelta(seconds=2)  # deviation of this machine's clock that is logged


def steady_seconds() -> float:
    """Seconds that never jump, and where possible count while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class ServersClock:
    """Call it for the time. One per process.

    Args:
        ask: returns the servers' time. Raises: PagewireError.
        here: this machine's clock. steady: its seconds, which never jump.
    """

    def __init__(
        self,
        ask: Callable[[], Awaitable[datetime]],
        here: Callable[[], datetime] = lambda: datetime.now(UTC),
        steady: Callable[[], float] = steady_seconds,
    ) -> None:
        self._ask = ask
        self._here = here
        self._steady = steady
        self._known: tuple[datetime, float] | None = None
        self._keeping: asyncio.Task[None] | None = None

    def __call__(self) -> datetime:
        if self._known is None:
            return self._here()
        there, at = self._known
        return there + timedelta(seconds=self._steady() - at)

    async def look(self) -> bool:
        """Ask once; returns whether there was an answer. Without one the known time stays."""
        asked = self._steady()
        try:
            there = await self._ask()
        except PagewireError as err:
            log.debug("the servers do not tell the time", error=str(err))
            return False
        self._known = there, (asked + self._steady()) / 2
        ahead = self._here() - self()
        CLOCK_AHEAD.set(ahead.total_seconds())
        if abs(ahead) >= OFF:
            seconds = round(ahead.total_seconds())
            log.warning("this machine's clock is off; going by the servers'", ahead_seconds=seconds)
        return True

    async def start(self) -> None:
        """Look now, and again from time to time."""
        found = await self.look()
        self._keeping = asyncio.create_task(self._keep(found), name="servers' clock")

    async def aclose(self) -> None:
        if self._keeping is not None:
            self._keeping.cancel()
            with suppress(asyncio.CancelledError):
                await self._keeping

    async def _keep(self, found: bool) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY if found else LOOK_AGAIN)
            found = await self.look()
