"""The threads of one model in this process: a visitor's question before a save before bulk work.

calls ─▶ the most urgent first ─▶ threads, which may give way to others ─▶ results
                                    nothing done for PATIENCE: one call is made by the relief, which does not
"""

from __future__ import annotations

import asyncio
import itertools
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
# Seconds without a result after which what gives way is taken to be starved: several times what a call takes. On a
# machine whose processors are all taken by others, who gives way to everybody would otherwise never be done.
PATIENCE = 1.5


class ModelThreads:
    """Runs calls, the urgent ones first, one after the other in each thread."""

    def __init__(
        self,
        name: str,
        nice: int = 0,
        count: int = 1,
        begin: Callable[[], None] = lambda: None,
        relief: Callable[[], None] | None = None,
    ) -> None:
        """
        Args:
            nice: gives way to other processes by so much (pipelines.runtime.niceness).
            count: calls at once. Models use all cores by themselves: more than one pays only where a call leaves
                some of them idle.
            begin: called in each thread before its first call; must not raise.
            relief: begins one thread more, when first needed. Whenever nothing was done for PATIENCE, it makes one
                call, also one that another thread is at: calls must be good for being made twice at once.
        """
        self._begin = begin
        self._nice = nice
        self._calls: queue.PriorityQueue[tuple[int, int, Callable[[], None] | None]] = queue.PriorityQueue()
        self._order = itertools.count()
        self._name = name
        self._at_work: dict[int, Callable[[], None]] = {}  # the oldest first
        self._done_at = monotonic()
        self._threads = [threading.Thread(target=self._work, name=f"{name}-{n}", daemon=True) for n in range(count)]
        self._ended = threading.Event()
        self._relief = relief and threading.Thread(
            target=self._relieve, args=(relief,), name=f"{name}-relief", daemon=True
        )
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
            for thread in self._threads:
                thread.start()
            if self._relief:
                self._relief.start()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()

        def work() -> None:
            if future.done():  # cancelled, or told by who made the same call
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
            if self._relief:
                await asyncio.to_thread(self._relief.join)

    def _work(self) -> None:
        thread_gives_way(self._nice)
        self._begin()
        while True:
            _, number, work = self._calls.get()
            if work is None:
                return
            self._at_work[number] = work
            work()
            self._at_work.pop(number, None)
            self._done_at = monotonic()

    def _relieve(self, begin: Callable[[], None]) -> None:
        begun = False
        while not self._ended.wait(PATIENCE / 4):
            if monotonic() - self._done_at < PATIENCE or (work := self._starved()) is None:
                continue
            if not begun:
                begin()
                begun = True
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
