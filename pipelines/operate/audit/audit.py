"""Audit: compares an index with the change log.

    cms.changes up to now ─▶ ┐
                             ├─▶ drift ─▶ suspects ─▶ read again, until they agree or `settle` is over ─▶ findings
    the whole index ───────▶ ┘               └── later records of the log, the index after a refresh

Changes keep coming meanwhile. The index must show the log's state at the begin of the audit, or a newer change that is
in the log by now; so a change on its way is a suspect for a moment only. All records stream through a database on disk
(`drift`): memory stays flat whatever the size of the site.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from dataclasses import dataclass
from time import monotonic
from typing import Literal, Protocol, Self

from pipelines.ingest.ports import KnownPages
from pipelines.operate.audit.index_diff import ChunkDocument, HeadDocument, IndexDiff, WrongDocument
from pipelines.operate.audit.report import AuditReport, finding
from pipelines.operate.off_loop import off_loop
from pipelines.runtime.bus import LogScan
from pipelines.runtime.errors import Retryable

SETTLE = 20.0  # seconds; some ten times what a save takes from the log to the index
POLL = 1.0  # seconds between two reads of the suspects
LOOK = 500  # pages read together
KEPT = 100  # findings in the report; all are counted


class AuditStopped(Retryable):
    """The audit's own temporary database does not work."""

    code = "audit-stopped"

    def __init__(self, err: Exception) -> None:
        super().__init__(f"the audit's temporary database: {err}; it needs some 100 bytes a chunk where TMPDIR points")


class Inventory(Protocol):
    """One index (adapters.elastic.inventory.ElasticInventory)."""

    @property
    def name(self) -> str: ...

    @property
    def model(self) -> str: ...

    @property
    def chunker(self) -> str: ...

    async def count(self) -> int: ...

    def read(
        self, page_keys: Sequence[str] | None = None
    ) -> AsyncGenerator[tuple[list[HeadDocument], list[ChunkDocument]], None]:
        """Everything written before this call, of these pages (default: of all)."""

    async def delete(self, documents: Sequence[WrongDocument]) -> None: ...


OpenLog = Callable[[], AbstractAsyncContextManager[LogScan]]


@dataclass(frozen=True)
class AuditProgress:
    """Progress of an audit: records of the log, documents of the index, or pages that do not agree yet."""

    step: Literal["log", "index", "settling"]
    done: int
    total: int


Report = Callable[[AuditProgress], None]


@dataclass(eq=False)
class Audit:
    """One audit of one index: `async with Audit(...) as audit: report = await audit.run()`. For one task.

    Afterwards `ask` and `changes` serve the repair.
    """

    site: str
    index: Inventory | None
    open_log: OpenLog
    receipts: KnownPages
    report: Report

    def __post_init__(self) -> None:
        self._stack = AsyncExitStack()
        self._seen: dict[int, int] = {}  # offsets up to which the log is read

    async def __aenter__(self) -> Self:
        """Raises: Retryable: no broker, no room for the database."""
        async with AsyncExitStack() as stack:
            aside = await stack.enter_async_context(off_loop(AuditStopped))  # decoding and SQL
            self.ask = aside.call
            model, chunker = (self.index.model, self.index.chunker) if self.index else (None, None)
            self.drift = await self.ask(IndexDiff, self.site, model, chunker)  # call its methods through `ask` only
            stack.callback(aside.later, self.drift.close)
            self.changes = await stack.enter_async_context(self.open_log())
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def run(self, settle: float = SETTLE, *, patience: float = 0.0) -> AuditReport:
        """Compare.

        Args:
            settle: seconds to wait until changes on their way agree; suspects are read again at least once.
            patience: wait for the pipeline until no further page has agreed for so many seconds.

        Raises: Retryable: a service does not answer, or the index is gone.
        """
        started = monotonic()
        await self._read_log(await self.changes.ends())
        await self.ask(self.drift.log_is_read)
        await self._read_index()
        await self.ask(self.drift.index_is_read)
        await self._read_tail()
        left = await self._judge()
        suspects, end, progress_at = left, monotonic() + settle, monotonic()
        while left:
            before = left
            self.report(AuditProgress("settling", suspects - left, suspects))
            await self._look_again()
            left = await self._judge()
            self.report(AuditProgress("settling", suspects - left, suspects))
            if left < before:
                progress_at = monotonic()
            if patience and await self.ask(self.drift.curable):
                end = max(end, progress_at + patience)
            if not left or monotonic() >= end:
                break
            await asyncio.sleep(min(POLL, end - monotonic()))
        return await self._result(monotonic() - started)

    async def _read_log(self, ends: Mapping[int, int]) -> None:
        begins = await self.changes.begins()
        total = sum(ends.values()) - sum(begins.values())
        at = dict(begins)
        async for batch in self.changes.read(until=ends):
            await self.ask(self.drift.add_records, batch)
            at.update((record.partition, record.offset + 1) for record in batch)
            self.report(AuditProgress("log", sum(at.values()) - sum(begins.values()), total))
        self._seen = dict(ends)
        self.report(AuditProgress("log", total, total))

    async def _read_tail(self) -> None:
        """Read the log's new records; call it after reading the index, so that the log is newer."""
        ends = await self.changes.ends()
        async for batch in self.changes.read(since=self._seen, until=ends):
            await self.ask(self.drift.add_records, batch)
        self._seen = dict(ends)

    async def _read_index(self) -> None:
        if self.index is None:
            return
        total, done = await self.index.count(), 0
        async with aclosing(self.index.read()) as batches:
            async for heads, chunks in batches:
                await self.ask(self.drift.add_documents, heads, chunks)
                done += len(heads) + len(chunks)
                self.report(AuditProgress("index", min(done, total), total))
        self.report(AuditProgress("index", total, total))

    async def _look_again(self) -> None:
        """Read suspect pages again: from the index, then the log's new records."""
        after = ""
        while keys := await self.ask(self.drift.open_pages, after, LOOK):
            after = keys[-1]
            await self.ask(self.drift.forget_documents, keys)
            if self.index is not None:
                async with aclosing(self.index.read(keys)) as batches:
                    async for heads, chunks in batches:
                        await self.ask(self.drift.add_documents, heads, chunks)
        await self._read_tail()

    async def _judge(self) -> int:
        """The number of suspect pages, without those whose change is a dead letter."""
        await self.ask(self.drift.judge)
        after = ""
        while behind := await self.ask(self.drift.behind, after, LOOK):
            after = behind[-1][0]
            due = dict(behind)
            events = await self.receipts.receipts(due)
            failed = [k for k, event in events.items() if event.state == "failed" and event.change.revision == due[k]]
            await self.ask(self.drift.mark_failed, failed)
        return await self.ask(self.drift.close_agreeing)

    async def _result(self, seconds: float) -> AuditReport:
        pages, deleted = await self.ask(self.drift.pages)
        return AuditReport(
            site=self.site,
            index=self.index.name if self.index else None,
            pages=pages - deleted,
            deleted=deleted,
            chunks=await self.ask(self.drift.chunks),
            counts=await self.ask(self.drift.counts),
            findings=tuple(finding(found) for found in await self.ask(self.drift.findings, KEPT)),
            failed=await self.ask(self.drift.failed),
            unreadable=self.drift.unreadable,
            seconds=round(seconds, 3),
        )
