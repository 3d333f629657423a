"""Repeats a call every so many seconds, also after errors, until the process ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

log = structlog.get_logger(__name__)


class PeriodicTask:
    """Runs in an asyncio task of its own; close it.

    Args:
        name: for the log.
        every: seconds from the end of one call to the next.
        do: handles its expected errors; unexpected ones are logged, and it is called again.
    """

    def __init__(self, name: str, every: float, do: Callable[[], Awaitable[object]]) -> None:
        self._name = name
        self._every = every
        self._do = do
        self._task: asyncio.Task[None] | None = None

    async def start(self, *, at_once: bool = True) -> None:
        """`at_once`: return after the first call."""
        if at_once:
            await self._once()
        self._task = asyncio.create_task(self._run(), name=self._name)

    async def aclose(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._every)
            await self._once()

    async def _once(self) -> None:
        try:
            await self._do()
        except Exception:
            log.exception("this went wrong, and is tried again", what=self._name)
