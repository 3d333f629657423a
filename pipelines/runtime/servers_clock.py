"""The servers' clock: one time for all gateways, whatever the clocks of their machines say.

    look: asked ──── answered: it is T there ─▶ T at the middle of the two, and this machine's steady seconds since

Saves without a revision are numbered by it, and questions get their deadline by it: a gateway an hour ahead would
otherwise win over whoever saves after it, and one an hour behind have its questions given up before they are read.
Until the first look succeeds, and only until then, this machine's own clock has to do.
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

LOOK_EVERY = 60.0  # seconds; two steady clocks part by some milliseconds in them
LOOK_AGAIN = 5.0  # seconds after a look that failed
OFF = timedelta(seconds=2)  # of this machine's clock, from which on its operator is told


def steady_seconds() -> float:
    """Seconds that never jump, and go on where the machine sleeps, if it can tell those."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class ServersClock:
    """Call it for the time. One per process.

    Args:
        ask: what time it is for the servers. Raises: PagewireError.
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
        """Ask once; whether there was an answer. What is known stays until there is a new one."""
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
        """Look, and look again from time to time."""
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
