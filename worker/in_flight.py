"""The in-flight window: runs many records of a partition at once, and those of one key in order.

```
 queue of a partition, oldest unfinished record first; same letter = same order key
   [ a run | b run | a wait | c run | d done | ...window ]  e  f  g ...     full -> the partition is not fetched
     └ head: everything before it is finished
```
All partitions together hold at most `records` records and `bytes` bytes of unfinished work; at the limit nothing is
fetched. Only the first `window` records from the head may start. So a crash replays at most `window` finished records
per partition behind a slow one, and a record in retries holds back its own partition only.

Early records (shares.py) start before they are fetched. They have a second queue per partition, with a window of its
own. While early records run, fewer fetched ones start.

With `at_once` the limit is the number of running records in all partitions together; the partition with the fewest is
first. A slow record then holds back no other until `AHEAD` others have ended behind it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from itertools import islice
from time import monotonic

import structlog

from pipelines.runtime.record import Record

log = structlog.get_logger(__name__)

Partition = tuple[str, int]  # topic, number

# A queue holds this many windows before its partition is no longer fetched: one runs, one is ready.
WINDOWS_AHEAD = 2
# ... or this many bytes: messages may be 8 MiB each.
BYTES_AHEAD = 32 * 1024 * 1024
# Early records may hold one part in so many of the limits, in addition to the fetched ones.
EARLY_PART = 4
# While early records run, fetched ones get one part in so many of the window ...
FETCHED_PART = 4
# ... and for a while after: on the way to its turn in the next stage, a site waits for the records that run meanwhile.
LINGER = 10.0  # seconds
# With `at_once`, a record may be this far ahead of the head of its queue; a crash replays as many at most. A visitor's
# question ends within a minute or two, in which a partition gets fewer.
AHEAD = 1024
# A cancelled handler gets this long to end; after that we ignore it, unacknowledged.
CANCEL_GRACE = 2.0  # seconds


@dataclass(eq=False)
class RecordInFlight:
    """A record in flight. `busy_until` (monotonic seconds): afterwards the watchdog takes it for stalled."""

    record: Record
    key: bytes
    busy_until: float = 0.0
    task: asyncio.Task[None] | None = None
    done: bool = False
    size: int = 0
    idle: bool = False  # it waits for its next try
    abandoned: bool = False  # cancelled or revoked: it is not acknowledged, even if it succeeds


@dataclass(eq=False)
class _Queue:
    works: deque[RecordInFlight] = field(default_factory=deque)
    bytes: int = 0
    running: int = 0  # started and not done
    early: bool = False


class InFlight:
    """Runs records concurrently within a window per partition. All on one event loop, no locks."""

    def __init__(
        self,
        *,
        window: int,
        order_key: Callable[[Record], bytes],
        work: Callable[[RecordInFlight], Awaitable[None]],
        finished: Callable[[Record], None],
        failed: Callable[[BaseException], None],
        opened: Callable[[], None] = lambda: None,
        early_anywhere: Callable[[], bool] | None = None,
        records: int = 512,
        bytes: int = 64 * 1024 * 1024,
        at_once: int | None = None,
    ) -> None:
        """Args:
        window: records of a partition, from its head.
        at_once: running records of all partitions; replaces the window.
        work: brings one record to its end; an exception from it is a defect in the worker.
        finished: called once per finished record, in any order.
        failed: called with such a defect; the process should end.
        opened: called when partitions were assigned, before their first record.
        early_anywhere: whether early records run in any stage of the process. All stages share its processors: the
            records that one stage finishes for large sites delay a small site in the next stage.
        """
        self._window = AHEAD if at_once else window
        self._full = AHEAD if at_once else WINDOWS_AHEAD * window  # records of a queue
        self._at_once = at_once
        self._order_key = order_key
        self._work = work
        self._finished = finished
        self._failed = failed
        self._opened = opened
        self._early_anywhere = early_anywhere or (lambda: self.early_runs)
        self._early_until = 0.0  # monotonic seconds
        self._limits = records, bytes
        self._held, self._held_bytes = [0, 0], [0, 0]  # unfinished, of all partitions: fetched, early
        self._queues: dict[tuple[Partition, bool], _Queue] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._ignored: set[asyncio.Task[None]] = set()
        self._open = True
        self._for_good = False
        self.epoch = 0  # increases when all records in flight are dropped
        self.room = asyncio.Event()  # set when a full queue may have room again

    def put(self, record: Record, *, early: bool = False) -> None:
        """Take a record; it starts as soon as window and order allow. While closed it is ignored, and fetched later."""
        if not self._open:
            return
        queue = self._queues.setdefault(((record.topic, record.partition), early), _Queue(early=early))
        work = RecordInFlight(record, self._key_of(record), size=_size(record))
        queue.works.append(work)
        queue.bytes += work.size
        self._held[early] += 1
        self._held_bytes[early] += work.size
        self._start(queue)

    def full(self, partition: Partition) -> bool:
        """Whether to stop fetching this partition for now."""
        if self._all_held():
            return True
        queue = self._queues.get((partition, False))
        return queue is not None and (len(queue.works) >= self._full or queue.bytes >= BYTES_AHEAD)

    def room_early(self, partition: Partition) -> int:
        """How many early records the partition may take now."""
        records, held_bytes = (limit // EARLY_PART for limit in self._limits)
        if not self._open or self._held[True] >= records or self._held_bytes[True] >= held_bytes:
            return 0
        queue = self._queues.get((partition, True))
        return self._window - sum(not work.done for work in queue.works) if queue else self._window

    def at_work(self, partition: Partition) -> list[Record]:
        """Fetched records of the partition that are started and not done."""
        queue = self._queues.get((partition, False))
        return [work.record for work in queue.works if work.task is not None and not work.done] if queue else []

    def busy(self, partition: Partition) -> bool:
        """Whether the partition waits for a running record within its time limit: one of its own or, at the common
        limits, one of any partition.
        """
        now = monotonic()
        own = [queue for (where, _), queue in self._queues.items() if where == partition]
        waited_for = self._queues.values() if self._all_held() or self._all_run() else own
        return any(
            work.task is not None and not work.done and work.busy_until >= now
            for queue in waited_for
            for work in queue.works
        )

    def _all_held(self) -> bool:
        return self._held[False] >= self._limits[0] or self._held_bytes[False] >= self._limits[1]

    def _all_run(self) -> bool:
        return self._at_once is not None and sum(queue.running for queue in self._queues.values()) >= self._at_once

    @property
    def running(self) -> int:
        return len(self._running)

    def close(self) -> None:
        """Start no more records and drop waiting ones; running ones go on."""
        self._open = False
        for queue in self._queues.values():
            queue.works = deque(work for work in queue.works if work.task is not None)
        self._count()
        self.room.set()

    async def drain(self, limit: float, *, for_good: bool = False) -> None:
        """Close, give running work `limit` seconds, cancel the rest, and drop all records.

        `for_good`: the process ends; a rebalance in between must not open it again.
        """
        self._for_good |= for_good
        self.close()
        self._end_idle()
        if self._running:
            await asyncio.wait(tuple(self._running), timeout=limit)
        late = tuple(self._running)
        for queue in self._queues.values():
            for work in queue.works:
                if not work.done:
                    work.abandoned = True
        for task in late:
            task.cancel()
        if late:
            log.warning("work cut off; it will be repeated", records=len(late), after_seconds=limit)
            _, ignored = await asyncio.wait(late, timeout=CANCEL_GRACE)
            if ignored:
                log.error("work does not heed its cancellation; left to itself", records=len(ignored))
                self._running -= ignored
                self._ignored |= ignored
        self._queues.clear()
        self._count()

    def _end_idle(self) -> None:
        """Cancel records that wait for their next try: the group would wait with them for the whole limit."""
        for queue in self._queues.values():
            for work in queue.works:
                if work.idle and not work.done and work.task is not None:
                    work.abandoned = True
                    work.task.cancel()

    def open(self) -> None:
        """Take records again (partitions were assigned)."""
        self.epoch += 1
        self._opened()
        self._queues.clear()
        self._count()
        self._open = not self._for_good

    def _key_of(self, record: Record) -> bytes:
        try:
            return self._order_key(record)
        except Exception as err:  # noqa: BLE001 - an unforeseen key must not stop the worker; the handler will judge
            log.warning("no order key", record=str(record), error=repr(err))
            return record.key or b""

    def _start(self, queue: _Queue) -> None:
        while queue.works and queue.works[0].done:
            queue.works.popleft()
        if not self._open:
            return
        few = max(1, self._window // FETCHED_PART) if not queue.early and self._early_anywhere() else self._window
        taken: set[bytes] = set()
        for work in islice(queue.works, self._window):
            if work.done:
                continue
            if work.task is None and work.key not in taken and queue.running < few and not self._all_run():
                queue.running += 1
                work.task = asyncio.create_task(self._run(queue, work), name=f"work {work.record}")
                self._running.add(work.task)
                work.task.add_done_callback(self._gone)
            taken.add(work.key)

    @property
    def early_runs(self) -> bool:
        """Whether an early record runs, or has just ended. One in retries does not count: it may wait for a quarter of
        an hour.
        """
        early = (queue for queue in self._queues.values() if queue.early) if self._held[True] else ()
        return any(not work.done and not work.idle for queue in early for work in queue.works) or (
            monotonic() < self._early_until
        )

    def _count(self) -> None:
        """Count again, after queues were cut."""
        self._held, self._held_bytes = [0, 0], [0, 0]
        for queue in self._queues.values():
            held = [work.size for work in queue.works if not work.done]
            queue.running = sum(work.task is not None and not work.done for work in queue.works)
            queue.bytes = sum(held)
            self._held[queue.early] += len(held)
            self._held_bytes[queue.early] += queue.bytes

    def _let_go(self, queue: _Queue, work: RecordInFlight) -> None:
        """Release the bytes of a record that stays in its queue until those before it are done."""
        self._held[queue.early] -= 1
        self._held_bytes[queue.early] -= work.size
        queue.running -= 1
        queue.bytes -= work.size
        work.record = replace(work.record, value=None, headers=())

    def _gone(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._ignored.discard(task)

    async def _run(self, queue: _Queue, work: RecordInFlight) -> None:
        try:
            await self._work(work)
        except asyncio.CancelledError:
            if work.abandoned:
                return
            raise
        except Exception as err:  # noqa: BLE001 - handed to the owner of the process
            self._failed(err)
            return
        # A handler may swallow its cancellation and return normally.
        if work.abandoned:
            return
        work.done = True
        if queue.early:
            self._early_until = monotonic() + LINGER
        self._finished(work.record)
        self._let_go(queue, work)
        if self._at_once is None and not (queue.early and not self._held[True]):
            self._start(queue)
        else:
            self._start_others()
        self.room.set()

    def _start_others(self) -> None:
        for queue in sorted(self._queues.values(), key=lambda queue: queue.running):
            self._start(queue)


def _size(record: Record) -> int:
    return len(record.value or b"") + len(record.key or b"")
