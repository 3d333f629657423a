"""Runs file and SQL calls off the event loop, in one thread, one after the other."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from itertools import islice
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class OffLoop:
    """`async with off_loop() as aside: await aside.call(function, ...)`."""

    def __init__(self, thread: ThreadPoolExecutor, stopped: Callable[[Exception], Exception]) -> None:
        """`stopped`: the error to raise where the disk or the database fails."""
        self._thread = thread
        self._stopped = stopped

    async def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Raises: `stopped`. What the function raises."""
        work = partial(function, *args, **kwargs)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except (OSError, sqlite3.Error) as err:
            raise self._stopped(err) from err

    def later(self, function: Callable[[], object]) -> None:
        """Call this after the thread's current work, without waiting for it."""
        self._thread.submit(function)

    async def batches(
        self, items: Iterator[T], size: int, weight: Callable[[T], int], most: int
    ) -> AsyncGenerator[list[T], None]:
        """The items in lists of at most `size`, which end when they weigh `most`."""

        def some() -> list[T]:
            taken: list[T] = []
            heavy = 0
            for item in islice(items, size):
                taken.append(item)
                heavy += weight(item)
                if heavy >= most:
                    break
            return taken

        while batch := await self.call(some):
            yield batch


@asynccontextmanager
async def off_loop(stopped: Callable[[Exception], Exception]) -> AsyncIterator[OffLoop]:
    """The exit waits for the thread's current work, and other tasks go on meanwhile."""
    thread = ThreadPoolExecutor(1, "off-loop")
    try:
        yield OffLoop(thread, stopped)
    finally:
        await asyncio.to_thread(thread.shutdown)
