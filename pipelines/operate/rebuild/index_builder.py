"""Index builder: writes the pages of a topic into one index.

    cms.changes ───────▶ cut ──▶ embed ──┐
    ingest.chunks ─────────────▶ embed ──┼─▶ the index, by the same rules as the index stage
    ingest.embeddings ───────────────────┘

It reads in batches and notes its offsets, so it can be killed at any point: repeated writes change nothing. A record
for an index of another kind (from before the last rebuild) is made again from the page's change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

import structlog

from pipelines.ingest.accept import newer, reference
from pipelines.ingest.embed import Embedding
from pipelines.ingest.ports import KnownPages, PageStore
from pipelines.operate.rebuild.orders import WorkerOrders, WorkersAway
from pipelines.operate.rebuild.page_builder import (
    BatchedPageStore,
    BuildTarget,
    Built,
    PageBuilder,
    ReadAttachments,
    SourceMessage,
    origin_of,
)
from pipelines.runtime.bus import LogReader
from pipelines.runtime.errors import Permanent, Retryable, WrongUse
from pipelines.runtime.indexes import IndexGone
from pipelines.runtime.record import Record
from pipelines.runtime.retry import Pause, RetryPolicy, patiently
from schemas.base import WireError
from schemas.head import Head
from schemas.ingest import PageChunks, PageEmbeddings
from schemas.page import ChangeRef, PageChange
from schemas.rebuild import RebuildSource

log = structlog.get_logger(__name__)

AT_ONCE = 16  # pages built concurrently
AHEAD = 256  # open orders: enough that no worker waits, and few that a stopped rebuild leaves behind
BATCHES_AHEAD = 4  # batches with open orders at the same time
KEPT_FAILURES = 20
WEIGHT = 64 * 1024  # bytes decoded until other tasks get their turn


@dataclass
class BuildTally:
    """Counts of the written pages so far."""

    pages: int = 0
    chunks: int = 0
    embedded: int = 0
    remade: int = 0
    failures: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)

    def add(self, built: Built) -> None:
        self.pages += built.pages
        self.chunks += built.chunks
        self.embedded += built.embedded
        self.remade += built.remade

    def fail(self, page_key: str, reason: str) -> None:
        self.failures += 1
        if len(self.failed) < KEPT_FAILURES:
            self.failed.append((page_key, reason))


class IndexBuilder:
    """Fills one index from one topic. One per rebuild."""

    def __init__(
        self,
        source: RebuildSource,
        target: BuildTarget,
        store: PageStore,
        live: KnownPages,
        embedding: Embedding,
        changes: LogReader,
        read: ReadAttachments,
        policy: RetryPolicy,
        orders: WorkerOrders | None = None,
    ) -> None:
        """
        Args:
            read: returns the text of a page's attachments.
            orders: sends pages to workers; default: this process builds all pages.
        """
        self._source = source
        self._target = target
        self._store = store
        self._live = live
        self._pages = PageBuilder(target, embedding, changes, read)
        self._policy = policy
        self._orders = orders
        self._prefix = f"{target.site}:".encode()
        self._gate = asyncio.Semaphore(AHEAD if orders else AT_ONCE)
        self.batches = BATCHES_AHEAD if orders else 1  # that may be written concurrently
        self._named: set[str] = set()  # pages whose winner is lost in the log
        self.tally = BuildTally()

    def take(self) -> BuildTally:
        """The counts since the last call."""
        tally, self.tally = self.tally, BuildTally()
        return tally

    async def decode(self, batch: Sequence[Record]) -> dict[str, list[SourceMessage]]:
        """The site's messages of a batch by page, oldest first. Undecodable ones are dead letters already."""
        pages: dict[str, list[SourceMessage]] = {}
        weight = 0
        for record in batch:
            if not (record.key or b"").startswith(self._prefix):
                continue
            try:
                given = self._decode(record)
            except WireError as err:
                self.tally.fail((record.key or b"").decode(errors="replace"), f"{record}: {err}")
                continue
            if given is not None:
                pages.setdefault(given.change.page_key, []).append(given)
            weight += len(record.value or b"")
            if weight > WEIGHT:  # a bulk may be under way meanwhile
                weight = 0
                await asyncio.sleep(0)
        return pages

    async def write(
        self, pages: Mapping[str, Sequence[SourceMessage]], settled: Callable[[int], None] = lambda _: None
    ) -> None:
        """Write decoded messages into the index; returns when all are written, or have failed for good.

        Args:
            settled: receives, after each page, how many more messages are done.

        Raises:
            Retryable: a service is away for longer than `retry_for`; the batch may be repeated.
            WrongUse: a setting has to be corrected first.
        """
        if not pages:
            return
        heads, shown = await patiently(lambda: self._look(list(pages)), self._pause())
        store = BatchedPageStore(self._store, heads, shown)
        waiting = {
            key: [g for g in history if not self._target.shown(g.change, heads.get(key))]
            for key, history in pages.items()
        }
        for key, history in pages.items():
            if winner := await patiently(partial(self._lost, history, heads.get(key), shown.get(key)), self._pause()):
                waiting[key] = self._without_log(key, winner)
        work = [self._page(key, history, store, settled) for key, history in waiting.items() if history]
        for problem in await asyncio.gather(*work, return_exceptions=True):
            if problem is not None:
                raise problem

    async def _look(self, keys: list[str]) -> tuple[Mapping[str, Head], Mapping[str, Head]]:
        return await asyncio.gather(self._store.heads(keys), self._live.heads(self._target.site, keys))

    def _decode(self, record: Record) -> SourceMessage | None:
        match self._source:
            case "changes":
                change = PageChange.decode(record.value)
                ref = reference(change, record.partition, record.offset)
                return SourceMessage(ref, whole=change, origin=origin_of(ref))
            case "chunks":
                page = PageChunks.decode(record.value)
                origin = origin_of(page.change, chunks=record.offset, chunks_in=record.partition)
                return SourceMessage(page.change, page=page, origin=origin)
            case "embeddings":
                part = PageEmbeddings.decode(record.value)
                if part.superseded:
                    return None
                origin = origin_of(
                    part.change,
                    chunks=part.chunks_offset,
                    chunks_in=part.chunks_in,
                    embeddings=record.offset,
                    embeddings_in=record.partition,
                )
                return SourceMessage(part.change, part=part, origin=origin)

    async def _page(
        self, key: str, history: Sequence[SourceMessage], store: PageStore, settled: Callable[[int], None]
    ) -> None:
        """Write the winner; if that is impossible, the next older change."""
        async with self._gate:
            ahead = [given for given in history if given.part and given.part.ahead and given.change.op == "upsert"]
            revisions = list(_revisions([given for given in history if given not in ahead]))
            for revision in reversed(revisions):
                if await self._revision(key, revision, store):
                    break
            for given in ahead:  # after what they are about
                await self._revision(key, [given], store)
        settled(len(history))

    async def _lost(self, history: Sequence[SourceMessage], head: Head | None, shown: Head | None) -> ChangeRef | None:
        """The change in the live index, if it won over these and is no longer in the log.

        If the stages stand still for longer than compaction waits, it removes the winner before the index stage can
        requeue it (requeue.py), and the topic has only the losers.
        """
        if shown is None or not all(newer(shown.change, given.change) for given in history):
            return None
        winner = shown.change
        if head is not None and not newer(winner, head.change):
            return None
        if all(given.change.partition == winner.partition and given.change.offset < winner.offset for given in history):
            return None  # the normal case: the winner comes later
        with suppress(WireError):
            if await self._pages.from_log(winner):
                return None
        return winner

    def _without_log(self, key: str, winner: ChangeRef) -> list[SourceMessage]:
        """The message to write for it, if it is a delete. A lost text cannot be written, and an older one may be shown
        to more groups; the missing page keeps the index from being promoted.
        """
        if winner.op == "delete":
            return [SourceMessage(winner, origin=origin_of(winner))]
        if key not in self._named:
            self._named.add(key)
            self.tally.fail(
                key,
                f"visitors see revision {winner.revision}, and the change log has only an older one: save the page "
                f"again, or show the older one with `pagewire index audit {winner.site} --repair --force`",
            )
        return []

    async def _revision(self, key: str, revision: Sequence[SourceMessage], store: PageStore) -> bool:
        try:
            for given in revision:
                await patiently(partial(self._put, given, store), self._pause())
        except WrongUse:
            raise
        except (Permanent, WireError) as err:
            self.tally.fail(key, str(err))
            return False
        return True

    async def _put(self, given: SourceMessage, store: PageStore) -> None:
        built = await self._orders.built(given) if self._orders is not None else None
        if built is None:
            built = await self._pages.build(given, store)
        self.tally.add(built)

    def _pause(self) -> Pause:
        """As the policy says, for `retry_for` from now on; an index that is gone does not come back, and workers have
        been waited for.
        """
        deadline = asyncio.get_running_loop().time() + self._policy.retry_for

        def pause(err: Retryable, failures: int) -> float | None:
            wait = self._policy.wait(failures)
            if isinstance(err, IndexGone | WorkersAway) or asyncio.get_running_loop().time() + wait > deadline:
                return None
            log.warning("try failed", again_in=round(wait, 2), error=str(err))
            return wait

        return pause


def _revisions(history: Sequence[SourceMessage]) -> Iterator[list[SourceMessage]]:
    """A page's messages by change, the winner last; messages of one change as they came."""
    order: dict[tuple[int, bool], list[SourceMessage]] = {}
    for given in history:
        order.setdefault((given.change.revision, given.change.op == "delete"), []).append(given)
    for _, revision in sorted(order.items(), key=lambda item: item[0]):
        yield revision
