"""Doing something every so many seconds, whatever came of it the last time, until the process ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

log = structlog.get_logger(__name__)


class Regularly:
    """One task of its own; close it.

    Args:
        name: what the log calls it.
        every: seconds from the end of one time to the next.
        do: tells itself of what can go wrong with it. What nobody foresaw is logged, and ends nothing.
    """

    def __init__(self, name: str, every: float, do: Callable[[], Awaitable[object]]) -> None:
        self._name = name
        self._every = every
        self._do = do
        self._task: asyncio.Task[None] | None = None

    async def start(self, *, at_once: bool = True) -> None:
        """`at_once`: return when it was done for the first time."""
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
