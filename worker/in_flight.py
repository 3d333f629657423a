"""The in-flight window: many records of a partition at once, those of one key in order.

```
 queue of a partition, oldest unfinished record first; same letter = same order key
   [ a run | b run | a wait | c run | d done | ...window ]  e  f  g ...     full -> the partition is not fetched
     └ head: everything before it is finished
```
All partitions together hold at most `records` records and `bytes` bytes that are not worked on: then none is fetched.
Only the first `window` records from the head may be started. So a crash replays at most `window` finished
records per partition behind a slow one, and a message stuck in retries holds back its own partition only.

Records that are put `early` (shares.py) were not fetched yet, and wait for nothing that was: they have a second queue
in their partition, with a window of its own. As long as there are some, few of those that were fetched are begun.

With `at_once` it is not the place that counts but what runs: so many of all partitions together, the partition with the
fewest first. A slow record then holds back nobody until `AHEAD` others have ended behind it.
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

# A queue holds this many windows before its partition is no longer fetched: one at work, one at hand.
WINDOWS_AHEAD = 2
# ... or this many bytes: messages may be 8 MiB each.
BYTES_AHEAD = 32 * 1024 * 1024
# What early records may hold besides, of what all together may: a part in so many.
EARLY_PART = 4
# Fetched records of a partition that run while there are early ones: a part in so many of the window.
BESIDE_EARLY = 4
# ... and for a while after: on its way to the next stage and its turn there, a site waits for what runs meanwhile.
LINGER = 10.0  # seconds
# Records that one may be ahead of the head of its queue where what runs is counted: what a crash replays at most. A
# visitor's question ends within a minute or two, in which a partition gets fewer.
AHEAD = 1024
# A cancelled handler gets this long to end; after that it is left to itself, unacknowledged.
CANCEL_GRACE = 2.0  # seconds


@dataclass(eq=False)
class Work:
    """A record on its way. `busy_until` (monotonic seconds) is when it should have moved on, for the watchdog."""

    record: Record
    key: bytes
    busy_until: float = 0.0
    task: asyncio.Task[None] | None = None
    done: bool = False
    size: int = 0
    idle: bool = False  # it waits for its next try: nothing of it is under way
    abandoned: bool = False  # cancelled or no longer ours: whatever comes of it, it is not acknowledged


@dataclass(eq=False)
class _Queue:
    works: deque[Work] = field(default_factory=deque)
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
        work: Callable[[Work], Awaitable[None]],
        finished: Callable[[Record], None],
        failed: Callable[[BaseException], None],
        opened: Callable[[], None] = lambda: None,
        early_anywhere: Callable[[], bool] | None = None,
        records: int = 512,
        bytes: int = 64 * 1024 * 1024,
        at_once: int | None = None,
    ) -> None:
        """Args:
        window: of a partition, from its head.
        at_once: instead of a window, records of all partitions that run.
        work: brings one record to its end; an exception from it is a defect of ours.
        finished: called once per record that came to its end, in any order.
        failed: called with such a defect; the process should end.
        opened: called when partitions were assigned, before their first record.
        early_anywhere: whether early records are under way in any stage of the process, with which this one shares its
            processors: else what others have chunked meanwhile is what a small site waits for in the next stage.
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
        self._held, self._held_bytes = [0, 0], [0, 0]  # what is not done, of all partitions: fetched, and early
        self._queues: dict[tuple[Partition, bool], _Queue] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._deaf: set[asyncio.Task[None]] = set()
        self._open = True
        self._for_good = False
        self.epoch = 0  # counts up when everything in flight was forgotten
        self.room = asyncio.Event()  # set when a full queue may have room again

    def put(self, record: Record, *, early: bool = False) -> None:
        """Take a record; it starts as soon as window and order allow. Ignored while closed (it will come again)."""
        if not self._open:
            return
        queue = self._queues.setdefault(((record.topic, record.partition), early), _Queue(early=early))
        work = Work(record, self._key_of(record), size=_size(record))
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
        """Records of the partition that may be put early now."""
        records, held_bytes = (limit // EARLY_PART for limit in self._limits)
        if not self._open or self._held[True] >= records or self._held_bytes[True] >= held_bytes:
            return 0
        queue = self._queues.get((partition, True))
        return self._window - sum(not work.done for work in queue.works) if queue else self._window

    def at_work(self, partition: Partition) -> list[Record]:
        """Fetched records of the partition that are begun and not done."""
        queue = self._queues.get((partition, False))
        return [work.record for work in queue.works if work.task is not None and not work.done] if queue else []

    def busy(self, partition: Partition) -> bool:
        """Whether a record is being worked on within its time on which the partition waits: one of its own, or, when
        no more is held or may run, of any.
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
        """Start nothing more and forget what waits; what runs goes on."""
        self._open = False
        for queue in self._queues.values():
            queue.works = deque(work for work in queue.works if work.task is not None)
        self._count()
        self.room.set()

    async def drain(self, limit: float, *, for_good: bool = False) -> None:
        """Close, give running work `limit` seconds, cancel the rest. Afterwards nothing is ours any more.

        `for_good`: the process ends; a rebalance that comes in between must not open it again.
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
            _, deaf = await asyncio.wait(late, timeout=CANCEL_GRACE)
            if deaf:
                log.error("work does not heed its cancellation; left to itself", records=len(deaf))
                self._running -= deaf
                self._deaf |= deaf
        self._queues.clear()
        self._count()

    def _end_idle(self) -> None:
        """What only waits, while a service is away, would wait for all of the limit, and the group for it."""
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
        except Exception as err:  # noqa: BLE001 - a key nobody foresaw must not stop the worker; the handler will judge
            log.warning("no order key", record=str(record), error=repr(err))
            return record.key or b""

    def _start(self, queue: _Queue) -> None:
        while queue.works and queue.works[0].done:
            queue.works.popleft()
        if not self._open:
            return
        few = max(1, self._window // BESIDE_EARLY) if not queue.early and self._early_anywhere() else self._window
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
        """Whether any early record is under way, or has just ended; one that waits for its next try may do so for a
        quarter of an hour."""
        early = (queue for queue in self._queues.values() if queue.early) if self._held[True] else ()
        return any(not work.done and not work.idle for queue in early for work in queue.works) or (
            monotonic() < self._early_until
        )

    def _count(self) -> None:
        """Anew, after queues were cut."""
        self._held, self._held_bytes = [0, 0], [0, 0]
        for queue in self._queues.values():
            held = [work.size for work in queue.works if not work.done]
            queue.running = sum(work.task is not None and not work.done for work in queue.works)
            queue.bytes = sum(held)
            self._held[queue.early] += len(held)
            self._held_bytes[queue.early] += queue.bytes

    def _let_go(self, queue: _Queue, work: Work) -> None:
        """It stays in its queue until those before it are done, but its bytes need not."""
        self._held[queue.early] -= 1
        self._held_bytes[queue.early] -= work.size
        queue.running -= 1
        queue.bytes -= work.size
        work.record = replace(work.record, value=None, headers=())

    def _gone(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._deaf.discard(task)

    async def _run(self, queue: _Queue, work: Work) -> None:
        try:
            await self._work(work)
        except asyncio.CancelledError:
            if work.abandoned:
                return
            raise
        except Exception as err:  # noqa: BLE001 - handed to the owner of the process
            self._failed(err)
            return
        # A handler may swallow its cancellation and return as if all were well: never trust that.
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
