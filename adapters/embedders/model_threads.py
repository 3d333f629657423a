"""The threads of one model in this process, with priorities: a visitor's question, then a save, then bulk work.

calls ─▶ the most urgent first ─▶ threads, of low priority where `nice` is set ─▶ results
                                    no result for some time: a thread of normal priority makes one call
"""

from __future__ import annotations

import asyncio
import itertools
import os
import queue
from collections.abc import Callable, Iterable
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Any, TypeVar

from pipelines.runtime.niceness import thread_gives_way
from pipelines.runtime.try_limit import TryQueue

Piece = TypeVar("Piece")
Result = TypeVar("Result")
QUESTION, SAVE, BULK = 0, 1, 2  # priorities, the most urgent first
MAX_THREADS = 4  # makes more chunks than the neighbouring stages handle


def at_once() -> int:
    """The number of a model's threads on this machine. At least two, so that a question need not wait."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(max(cores, 2), MAX_THREADS)


class ModelThreads:
    """Runs calls in threads, urgent ones first."""

    def __init__(self, name: str, nice: int = 0, count: int = 1, patience: float | None = None) -> None:
        """
        Args:
            nice: the niceness of the threads (pipelines.runtime.niceness).
            count: of threads.
            patience: seconds without a result after which the threads count as starved; several times the duration of
                a call. On a machine that is busy with other processes, threads of low priority hardly run. So a thread
                of normal priority makes one call then, possibly one that another thread is running: calls must be safe
                to make twice in parallel. None: never.
        """
        self.name = name
        self._pool = ThreadPoolExecutor(count, name, thread_gives_way, (nice,))
        self._calls: queue.PriorityQueue[tuple[int, int, Callable[[], None]]] = queue.PriorityQueue()
        self._order = itertools.count()
        self._line = TryQueue()
        self._patience = patience if nice else None
        self._done_at = monotonic()

    async def run(self, call: Callable[..., Result], *args: Any, priority: int) -> Result:
        """Call in one of the threads and wait for the result. A cancelled caller leaves the queue.

        Raises:
            RuntimeError: closed.
        """
        future: Future[Result] = Future()  # never marked as running: two threads may run the call

        def work() -> None:
            if future.done():  # cancelled, or done by the other thread
                return
            settle: Callable[[], None]
            try:
                settle = partial(future.set_result, call(*args))
            except BaseException as err:  # noqa: BLE001 - raised in the caller's task
                settle = partial(future.set_exception, err)
            self._done_at = monotonic()
            with suppress(InvalidStateError):
                settle()

        self._calls.put((priority, next(self._order), work))
        self._pool.submit(self._most_urgent)
        with self._line.place():
            result = asyncio.wrap_future(future)
            try:
                while self._patience and not (await asyncio.wait([result], timeout=self._patience))[0]:
                    if monotonic() - self._done_at >= self._patience:
                        self._done_at = monotonic()
                        await asyncio.to_thread(work)
                return await result
            finally:
                result.cancel()

    async def each(self, call: Callable[[Piece], Result], pieces: Iterable[Piece], *, priority: int) -> list[Result]:
        """Call for each piece. All are queued at once, so that only more urgent calls run in between.

        Raises: as `run`, and the first error of a call; calls that have not begun by then are dropped.
        """
        calls = [asyncio.create_task(self.run(call, piece, priority=priority)) for piece in pieces]
        try:
            return await asyncio.gather(*calls)
        finally:
            for one in calls:
                one.cancel()

    async def aclose(self) -> None:
        """Finish queued calls, then end the threads."""
        await asyncio.to_thread(self._pool.shutdown)

    def _most_urgent(self) -> None:
        *_, work = self._calls.get_nowait()  # there is one: each call is queued before its turn is submitted
        work()
