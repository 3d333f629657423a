"""Coalesces the writes of many pages: those that arrive during a bulk go into the next one.

    page a ─┐                 ┌─▶ answers of a
    page b ─┼─▶ queue ─▶ bulk ┼─▶ answers of b        refresh() coalesces the same way
    page c ─┘                 └─▶ answers of c

A single save is written at once; an import fills its bulks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count, islice
from time import monotonic
from typing import Any, Literal

from elasticsearch import ApiError, AsyncElasticsearch

from adapters.elastic.client import DocumentRefused, ElasticsearchDenied, ElasticsearchDown, explained, refusal
from pipelines.runtime import tracing
from pipelines.runtime.errors import PagewireError, Retryable
from pipelines.runtime.record import Lane
from pipelines.runtime.retry import backoff
from schemas.head import Token

MAX_BULK_ITEMS = 500
MAX_BULK_CHARS = 4_000_000  # of text and units, without vectors; well below Elasticsearch's 100 MB
EACH_UNIT = 200  # characters of overhead: names of fields, headings
# Only refused items are sent again, while a retry by the stage would write all items again. Together with a last try
# that times out (REQUEST_TIMEOUT), this stays well below a stage's time limit.
ITEM_TIMEOUT = 12.0  # seconds
ITEM_BACKOFF = 0.5  # seconds at most before the second try, doubled for each further one
LONGEST_BACKOFF = 2.5  # seconds


class IndexMissing(Retryable):
    """The index of a write does not exist (any more)."""

    code = "index-gone"


@dataclass(frozen=True)
class RefreshPace:
    """The time of the next refresh. Refreshes are limited, since each makes a segment with its own vector graph.

    At once if fewer than `crowd` callers waited for the last one. Else after `gap` seconds, or as soon as `full`
    callers wait, or after `lull` seconds without a new caller.
    """

    crowd: int
    gap: float
    full: int
    lull: float


# A single save is refreshed at once; an import can wait.
PACES: dict[Lane, RefreshPace] = {
    "save": RefreshPace(crowd=3, gap=0.25, full=1_000, lull=0.25),
    "bulk": RefreshPace(crowd=1, gap=5.0, full=32, lull=1.5),
}


@dataclass(frozen=True)
class Write:
    """One item of a bulk. `document` None deletes.

    A lower `version` than the existing one is not written. With `replaces` there is no version: the write only replaces
    the document with this token, or creates one ("nothing").
    """

    index: str
    id: str
    version: int
    document: dict[str, Any] | None
    replaces: Token | Literal["nothing"] | None = None
    aliased: bool = True  # `index` is an alias: the write must never create an index of that name

    @property
    def chars(self) -> int:
        if not self.document:
            return 100
        units = self.document.get("units") or {}
        said = sum(EACH_UNIT + len(unit["text"]) + len(unit.get("header", "")) for unit in units.get("said", ()))
        waiting = len(self.document.get("part", {}).get("json", ""))
        return waiting + len(self.document.get("text", "")) + said + len(units.get("vectors", "")) + 300

    def lines(self) -> list[dict[str, Any]]:
        """The item in the format of the bulk API."""
        item: dict[str, Any] = {"_index": self.index, "_id": self.id}
        if self.replaces is None:
            item |= {"version": self.version, "version_type": "external_gte"}
        elif self.replaces != "nothing":
            item |= {"if_seq_no": self.replaces[0], "if_primary_term": self.replaces[1]}
        if self.document is None:
            return [{"delete": item}]
        action = "create" if self.replaces == "nothing" else "index"
        return [{action: item | {"require_alias": self.aliased}}, self.document]


@dataclass(frozen=True)
class WriteOutcome:
    """The outcome of a `Write`."""

    id: str
    status: int

    @property
    def stale(self) -> bool:
        """Whether a newer or another document exists, so that nothing was written. This is no error."""
        return self.status == 409


Result = WriteOutcome | Exception


@dataclass
class _Batch:
    writes: list[Write]
    done: asyncio.Future[list[Result]] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    caller: object = field(default_factory=tracing.here)


class Writer:
    """Coalescing writer and refresher of one lane. One per process and lane; close it last."""

    def __init__(self, es: AsyncElasticsearch, lane: Lane = "save") -> None:
        self._es = es
        self._lane = lane
        self._queue: asyncio.Queue[_Batch] = asyncio.Queue(maxsize=256)
        self._task: asyncio.Task[None] | None = None
        self._refreshing: dict[str, _Refresh] = {}

    async def write(self, writes: Sequence[Write]) -> list[WriteOutcome]:
        """Write all, in order within an index's shard.

        Raises:
            IndexBlocked: the index of an item refuses writes.
            ElasticsearchDown: items were still refused with 429 or 5xx after `ITEM_TIMEOUT`.
            ElasticsearchRefused: an item is refused for good; others of the call may be written.
        """
        if not writes:
            return []
        results: dict[int, Result] = {}
        pending = list(range(len(writes)))
        patience = monotonic() + ITEM_TIMEOUT
        for attempt in count(1):
            results |= zip(pending, await self._in_next_bulk([writes[i] for i in pending]), strict=True)
            pending = [i for i in pending if _is_temporary(results[i])]
            if not pending or monotonic() > patience:
                break
            await asyncio.sleep(backoff(attempt, ITEM_BACKOFF, LONGEST_BACKOFF))
        written = []
        for i in range(len(writes)):
            result = results[i]
            if isinstance(result, Exception):
                raise result
            written.append(result)
        return written

    async def refresh(self, index: str) -> None:
        """Wait for a refresh that begins after this call, which makes all earlier writes searchable.

        It may be delayed to be shared with other callers (`PACES`).
        """
        refresh = self._refreshing.setdefault(index, _Refresh(self._es, index, PACES[self._lane]))
        try:
            await refresh.wait()
        finally:
            # There may be thousands of indexes, so one is only kept here while it is refreshed.
            for name in [name for name, one in self._refreshing.items() if one.idle]:
                del self._refreshing[name]

    async def aclose(self) -> None:
        for refresh in self._refreshing.values():
            await refresh.aclose()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            batches = [await self._queue.get()]
            chars = sum(w.chars for w in batches[0].writes)
            items = len(batches[0].writes)
            while not self._queue.empty() and items < MAX_BULK_ITEMS and chars < MAX_BULK_CHARS:
                batch = self._queue.get_nowait()
                batches.append(batch)
                items += len(batch.writes)
                chars += sum(w.chars for w in batch.writes)
            try:
                with tracing.shared(batch.caller for batch in batches):
                    await self._settle(batches)
            except BaseException as err:
                for batch in batches:
                    if not batch.done.done():
                        batch.done.set_exception(
                            err if isinstance(err, Exception) else ElasticsearchDown("the writer was stopped")
                        )
                if not isinstance(err, Exception):
                    raise

    async def _in_next_bulk(self, writes: list[Write]) -> list[Result]:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="elastic-writer")
        batch = _Batch(writes)
        await self._queue.put(batch)
        return await batch.done

    async def _settle(self, batches: list[_Batch]) -> None:
        results = iter(await self._send([write for batch in batches for write in batch.writes]))
        for batch in batches:
            mine = list(islice(results, len(batch.writes)))
            if not batch.done.done():  # otherwise its caller is cancelled (timeout, shutdown)
                batch.done.set_result(mine)

    async def _send(self, writes: list[Write]) -> list[Result]:
        try:
            with explained(f"writing {len(writes)} documents"):
                try:
                    answer = await self._es.bulk(operations=[line for w in writes for line in w.lines()])
                except ApiError as err:
                    if err.meta.status != 413 or len(writes) == 1:
                        raise
                    half = len(writes) // 2
                    return await self._send(writes[:half]) + await self._send(writes[half:])
        except PagewireError as err:
            return [err] * len(writes)
        return [_result(next(iter(item.values()))) for item in answer["items"]]


def _is_temporary(result: Result) -> bool:
    """Whether a retry of the item may succeed soon. A refused key takes longer than a try may last."""
    return isinstance(result, ElasticsearchDown) and not isinstance(result, ElasticsearchDenied)


def _result(item: dict[str, Any]) -> Result:
    status = item["status"]
    if status < 300 or status in (404, 409):  # 404: the deleted document did not exist
        if status == 404 and "error" in item:
            return IndexMissing(f"{item['_id']}: {item['error'].get('reason')}")
        return WriteOutcome(item["_id"], status)
    reason = f"{item['_id']}: {item['error'].get('type')}: {item['error'].get('reason')}"
    return (refusal(status, reason) or DocumentRefused)(reason)


class _Refresh:
    """Refreshes one index. Callers that arrive during a refresh share the next one."""

    def __init__(self, es: AsyncElasticsearch, index: str, pace: RefreshPace) -> None:
        self._es = es
        self._index = index
        self._pace = pace
        self._waiting: list[asyncio.Future[None]] = []
        self._callers: list[object] = []
        self._arrived = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._next = 0.0

    @property
    def idle(self) -> bool:
        """Whether no caller waits, and the next refresh can be immediate."""
        return not self._waiting and (self._task is None or self._task.done()) and monotonic() >= self._next

    async def wait(self) -> None:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(done)
        self._callers.append(tracing.here())
        self._arrived.set()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name=f"refresh-{self._index}")
        await done

    async def aclose(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while self._waiting:
            await self._until_due()
            batch, self._waiting = self._waiting, []
            callers, self._callers = self._callers, []
            problem: Exception | None = None
            try:
                with tracing.shared(callers), explained(f"refreshing {self._index}"):
                    await self._es.indices.refresh(index=self._index)
            except PagewireError as err:
                problem = err
            finally:
                self._next = monotonic() + (self._pace.gap if len(batch) >= self._pace.crowd else 0.0)
                for done in batch:
                    if not done.done():
                        done.set_exception(problem) if problem else done.set_result(None)

    async def _until_due(self) -> None:
        """Wait until the next refresh is due."""
        with suppress(TimeoutError):
            while (left := self._next - monotonic()) > 0 and len(self._waiting) < self._pace.full:
                self._arrived.clear()
                async with asyncio.timeout(min(left, self._pace.lull)):
                    await self._arrived.wait()
