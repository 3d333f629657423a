"""The threads of one model in this process, with priorities: a visitor's question, then a save, then bulk work.

calls ─▶ the most urgent first ─▶ threads, of low priority where `nice` is set ─▶ results
                                    no result for some time: a thread of normal priority makes one call
"""

from __future__ import annotations

import asyncio
import itertools
import os
import queue
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Any, TypeVar

from pipelines.runtime.niceness import thread_gives_way
from pipelines.runtime.try_limit import TryQueue

Piece = TypeVar("Piece")
Result = TypeVar("Result")
QUESTION, SAVE, BULK, END = 0, 1, 2, 3  # priorities, the most urgent first
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
                a call. Threads of low priority would never finish on a machine that is busy with other processes. So
                a thread of normal priority makes one call then, possibly one that another thread is running: calls
                must be safe to make twice in parallel. None: there is no such thread.
        """
        self._name = name
        self._nice = nice
        self._calls: queue.PriorityQueue[tuple[int, int, Callable[[], None] | None]] = queue.PriorityQueue()
        self._order = itertools.count()
        self._running: dict[int, Callable[[], None]] = {}  # the oldest first
        self._done_at = monotonic()
        self._threads = [threading.Thread(target=self._work, name=f"{name}-{n}", daemon=True) for n in range(count)]
        self._relief: list[threading.Thread] = []
        if nice and patience:
            relief = threading.Thread(target=self._relieve, args=(patience,), name=f"{name}-relief", daemon=True)
            self._relief.append(relief)
        self._ended = threading.Event()
        self._started = False
        self._closed = False
        self._line = TryQueue()

    async def run(self, call: Callable[..., Result], *args: Any, priority: int) -> Result:
        """Call in one of the threads and wait for the result. A cancelled caller leaves the queue.

        Raises:
            RuntimeError: closed.
        """
        if self._closed:
            raise RuntimeError(f"{self._name} is closed")
        if not self._started:
            self._started = True
            for thread in self._threads + self._relief:
                thread.start()
        future: Future[Result] = Future()  # never marked as running: two threads may run the call

        def work() -> None:
            if future.done():  # cancelled, or done by the other thread
                return
            settle: Callable[[], None]
            try:
                settle = partial(future.set_result, call(*args))
            except BaseException as err:  # noqa: BLE001 - raised in the caller's task
                settle = partial(future.set_exception, err)
            with suppress(InvalidStateError):
                settle()

        if not self._running and self._calls.empty():
            self._done_at = monotonic()  # the wait begins now
        self._calls.put((priority, next(self._order), work))
        with self._line.place():
            return await asyncio.wrap_future(future)

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
        if not self._closed:
            self._closed = True
            for _ in self._threads:
                self._calls.put((END, next(self._order), None))
        if self._started:
            for thread in self._threads:
                await asyncio.to_thread(thread.join)
            self._ended.set()
            for thread in self._relief:
                await asyncio.to_thread(thread.join)

    def _work(self) -> None:
        thread_gives_way(self._nice)
        while True:
            _, number, work = self._calls.get()
            if work is None:
                return
            self._running[number] = work
            work()
            self._running.pop(number, None)
            self._done_at = monotonic()

    def _relieve(self, patience: float) -> None:
        while not self._ended.wait(patience / 4):
            if monotonic() - self._done_at >= patience and (work := self._starved()) is not None:
                work()
                self._done_at = monotonic()

    def _starved(self) -> Callable[[], None] | None:
        """The oldest running call, each at most once; else the next one of the queue."""
        for number in list(self._running):
            if (work := self._running.pop(number, None)) is not None:
                return work
        try:
            entry = self._calls.get_nowait()
        except queue.Empty:
            return None
        if entry[2] is None:
            self._calls.put(entry)
        return entry[2]
