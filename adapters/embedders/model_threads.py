"""The threads of one model in this process: a visitor's question before a save before bulk work.

calls ─▶ the most urgent first ─▶ threads, which may give way to others ─▶ results
                                    nothing done for some time: one call is made by a thread that does not give way
"""

from __future__ import annotations

import asyncio
import itertools
import os
import queue
import threading
from collections.abc import Callable, Iterable
from time import monotonic
from typing import Any, TypeVar

from pipelines.runtime.niceness import thread_gives_way
from pipelines.runtime.try_limit import Line

Piece = TypeVar("Piece")
Result = TypeVar("Result")
QUESTION, SAVE, BULK, END = 0, 1, 2, 3  # the lowest first
MOST_AT_ONCE = 4  # calls of one thread each: more chunks than the stages around a model take


def at_once() -> int:
    """How many calls of one thread each a model makes at once here. Two on one core: a question need not wait."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(max(cores, 2), MOST_AT_ONCE)


class ModelThreads:
    """Runs calls, the urgent ones first, one after the other in each thread."""

    def __init__(self, name: str, nice: int = 0, count: int = 1, patience: float | None = None) -> None:
        """
        Args:
            nice: gives way to other processes by so much (pipelines.runtime.niceness).
            count: calls at once.
            patience: seconds without a result after which what gives way is taken to be starved: several times what a
                call takes. On a machine whose processors are all taken by others, who gives way to everybody would
                otherwise never be done. Then a thread that does not give way makes one call, also one that another
                thread is at: calls must be good for being made twice at once. None: it waits.
        """
        self._name = name
        self._nice = nice
        self._calls: queue.PriorityQueue[tuple[int, int, Callable[[], None] | None]] = queue.PriorityQueue()
        self._order = itertools.count()
        self._at_work: dict[int, Callable[[], None]] = {}  # the oldest first
        self._done_at = monotonic()
        self._threads = [threading.Thread(target=self._work, name=f"{name}-{n}", daemon=True) for n in range(count)]
        self._relief: list[threading.Thread] = []
        if nice and patience:
            relief = threading.Thread(target=self._relieve, args=(patience,), name=f"{name}-relief", daemon=True)
            self._relief.append(relief)
        self._ended = threading.Event()
        self._started = False
        self._closed = False
        self._line = Line()

    async def run(self, call: Callable[..., Result], *args: Any, priority: int) -> Result:
        """Call in one of the threads and wait for the result; a caller that is cancelled frees its place in the queue.

        Raises:
            RuntimeError: closed.
        """
        if self._closed:
            raise RuntimeError(f"{self._name} is closed")
        if not self._started:
            self._started = True
            for thread in self._threads + self._relief:
                thread.start()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()

        def work() -> None:
            if future.done():  # cancelled, or made by the other thread
                return
            try:
                result = call(*args)
            except BaseException as err:  # noqa: BLE001 - the caller's to handle, in the caller's task
                _tell(loop, future, future.set_exception, err)
            else:
                _tell(loop, future, future.set_result, result)

        if not self._at_work and self._calls.empty():
            self._done_at = monotonic()  # nobody has waited until now
        self._calls.put((priority, next(self._order), work))
        with self._line.place():
            return await future

    async def each(self, call: Callable[[Piece], Result], pieces: Iterable[Piece], *, priority: int) -> list[Result]:
        """Call for each piece. All queue up at once, so that only what is more urgent gets in between.

        Raises as `run` does, and the first error of a call; what has not begun by then never does.
        """
        calls = [asyncio.create_task(self.run(call, piece, priority=priority)) for piece in pieces]
        try:
            return await asyncio.gather(*calls)
        finally:
            for one in calls:
                one.cancel()

    async def aclose(self) -> None:
        """Finish what waits, then end the threads."""
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
            self._at_work[number] = work
            work()
            self._at_work.pop(number, None)
            self._done_at = monotonic()

    def _relieve(self, patience: float) -> None:
        while not self._ended.wait(patience / 4):
            if monotonic() - self._done_at >= patience and (work := self._starved()) is not None:
                work()
                self._done_at = monotonic()

    def _starved(self) -> Callable[[], None] | None:
        """What has waited longest of what is being done, each once; else what is next."""
        for number in list(self._at_work):
            if (work := self._at_work.pop(number, None)) is not None:
                return work
        try:
            entry = self._calls.get_nowait()
        except queue.Empty:
            return None
        if entry[2] is None:
            self._calls.put(entry)
        return entry[2]


def _tell(loop: asyncio.AbstractEventLoop, future: asyncio.Future[Any], settle: Callable[[Any], None], it: Any) -> None:
    def settle_if_awaited() -> None:
        if not future.done():
            settle(it)

    if not loop.is_closed():
        loop.call_soon_threadsafe(settle_if_awaited)
