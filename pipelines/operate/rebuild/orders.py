"""Orders: a rebuild has the workers build its pages.

    rebuild ─▶ rebuild.orders ─▶ [ rebuild ] any worker, bulk lane ─▶ the index
       ▲ an order a page, some hundred ahead        │
       └───────── rebuild.results ◀─────────────────┘

No guarantee depends on an order: a page counts as built after a worker's result, the rebuild notes its offsets only
behind built pages, and a restarted rebuild reads the index first. So an order may be lost, come twice, or be filled
after the end of its rebuild; the index's heads and revisions decide, as they do between the lanes. So orders need no
order by key, and each goes to the partition with the fewest open ones: pages and workers differ in speed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack, aclosing
from time import monotonic
from typing import Self
from uuid import uuid4

import structlog

from pipelines.operate.rebuild.page_builder import Built, SourceMessage
from pipelines.runtime.bus import Bus, LogScan, Producer
from pipelines.runtime.errors import PagewireError, Permanent, Retryable, TooLarge, WrongUse
from pipelines.runtime.record import Record, in_lane
from pipelines.runtime.retry import RetryPolicy, patiently
from pipelines.runtime.stage import REBUILD
from schemas.base import WireError
from schemas.rebuild import PageBuilt, PageOrder
from schemas.topics import ORDERS, RESULTS

log = structlog.get_logger(__name__)

READ_EVERY = 0.2  # seconds between two reads of the results
LOOK_EVERY = 10.0  # seconds without a result between two looks at the workers
IN_VAIN = 3  # such looks in a row without a busy worker: a restart of a worker takes some ten seconds

OrderPlace = tuple[str, int, int]  # page, and partition and offset of its change


class WorkersAway(Retryable):
    """No worker builds the ordered pages."""

    code = "workers-away"


class OrderRefused(WrongUse):
    """A worker cannot build any page of this index, by its settings."""

    code = "order-refused"


class OrderFailed(Permanent):
    """A worker could not build the page."""

    code = "order-failed"


class WorkerOrders:
    """`async with WorkerOrders(...) as orders`: for one run of one rebuild."""

    def __init__(self, index: str, producer: Producer, bus: Bus, policy: RetryPolicy) -> None:
        self._index = index
        self._producer = producer
        self._bus = bus
        self._policy = policy
        self._run = uuid4().hex
        self._waiting: dict[OrderPlace, asyncio.Future[PageBuilt]] = {}
        self._unbuilt: dict[int, int] = {}  # orders, by partition
        self._read: Mapping[int, int] = {}  # offsets up to which the results are read
        self._quiet_since = monotonic()
        self._in_vain = 0
        self._ended: PagewireError | None = None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Raises: WorkersAway: no worker runs the stage. Retryable."""
        try:
            async with self._bus.view() as view:
                self._unbuilt = dict.fromkeys((await view.partitions([ORDERS])).get(ORDERS) or {0}, 0)
            if not (await self._at_work())[0]:
                raise self._away()
            scan = await self._stack.enter_async_context(self._bus.scan(RESULTS))
            self._read = await scan.ends()
            hearing = asyncio.create_task(self._attend(scan), name=f"orders of {self._index}")
            self._stack.push_async_callback(_cancelled, hearing)
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def built(self, given: SourceMessage) -> Built | None:
        """Order it and wait until it is built. None: a delete, or too large for an order: the caller builds it.

        Raises: OrderFailed: a worker could not build it. OrderRefused, WorkersAway. Retryable: no broker.
        """
        change, whole = given.change, given.whole
        if whole is None or change.op == "delete":
            return None
        if self._ended is not None:
            raise self._ended
        place = (change.page_key, change.partition, change.offset)
        result = self._waiting.setdefault(place, asyncio.get_running_loop().create_future())
        order = PageOrder(
            run=self._run, index=self._index, partition=change.partition, offset=change.offset, change=whole
        )
        partition = min(self._unbuilt, key=lambda number: self._unbuilt[number])
        self._unbuilt[partition] += 1
        try:
            await self._producer.send_bytes(
                ORDERS, change.page_key.encode(), order.encode(), in_lane((), "bulk"), partition=partition
            )
            return _read(await asyncio.shield(result))
        except TooLarge:
            return None
        finally:
            self._unbuilt[partition] -= 1
            if self._waiting.get(place) is result:
                del self._waiting[place]

    async def _attend(self, scan: LogScan) -> None:
        try:
            while True:
                await self._patiently(scan)
                await asyncio.sleep(READ_EVERY)
        except PagewireError as err:
            self._end(err)
        except Exception as err:  # else the callers would wait for ever
            log.exception("orders are not attended to any more", index=self._index)
            self._end(Retryable(f"the results of {self._index} cannot be heard: {err!r}"))

    async def _patiently(self, scan: LogScan) -> None:
        deadline = monotonic() + self._policy.retry_for

        def pause(err: Retryable, failures: int) -> float | None:
            wait = self._policy.wait(failures)
            return None if isinstance(err, WorkersAway) or monotonic() + wait > deadline else wait

        async def step() -> None:
            await self._hear(scan)
            if self._waiting and monotonic() - self._quiet_since > LOOK_EVERY:
                await self._look()

        await patiently(step, pause)

    async def _hear(self, scan: LogScan) -> None:
        ends = await scan.ends()
        async with aclosing(scan.read(since=self._read, until=ends)) as batches:
            async for records in batches:
                for record in records:
                    self._take(record)
        self._read = ends
        if not self._waiting:
            self._quiet_since = monotonic()

    def _take(self, record: Record) -> None:
        try:
            result = PageBuilt.decode(record.value)
        except WireError as err:
            log.warning("not a result", record=str(record), error=str(err))
            return
        if result.run != self._run:
            return
        self._quiet_since, self._in_vain = monotonic(), 0
        waiting = self._waiting.get((result.page_key, result.partition, result.offset))
        if waiting is not None and not waiting.done():
            waiting.set_result(result)

    async def _look(self) -> None:
        """Check that workers may still send results. Raises: WorkersAway."""
        members, lag = await self._at_work()
        self._quiet_since = monotonic()
        self._in_vain = 0 if members and lag else self._in_vain + 1
        if self._in_vain < IN_VAIN:
            return
        if not members:
            raise self._away()
        raise WorkersAway(
            f"the workers are done, but said nothing of {len(self._waiting):,} pages of {self._index}: they may have "
            "put them aside (`pagewire dlq list`); the same command goes on"
        )

    async def _at_work(self) -> tuple[int, int]:
        """The number of workers, and of their open orders."""
        async with self._bus.view() as view:
            [group] = REBUILD.groups
            found = (await view.lags([group]))[group]
        return found.members, found.lag

    def _away(self) -> WorkersAway:
        return WorkersAway(
            f"no worker runs the stage `{REBUILD.name}`, which builds {self._index}: start one "
            f"(`pagewire worker {REBUILD.name}`; `worker ingest` has it, too) or rebuild without --by workers"
        )

    def _end(self, err: PagewireError) -> None:
        self._ended = err
        for result in self._waiting.values():
            if not result.done():
                result.set_exception(err)


def _read(result: PageBuilt) -> Built:
    match result.outcome:
        case "built":
            return Built(result.pages, result.chunks, result.embedded)
        case "failed":
            raise OrderFailed(f"a worker gave it up, see `pagewire dlq list`: {result.reason}")
        case "refused":
            raise OrderRefused(f"a worker of the stage `{REBUILD.name}`: {result.reason}")


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
