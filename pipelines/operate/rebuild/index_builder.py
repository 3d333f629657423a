"""Index builder: puts what a topic holds into one index, whatever else goes on.

    cms.changes ───────▶ cut ──▶ embed ──┐
    ingest.chunks ─────────────▶ embed ──┼─▶ the index, by the same rules as the index stage
    ingest.embeddings ───────────────────┘

Reads in batches and remembers where to go on, so it can be killed at any point: what is done twice changes nothing. A
record that was made for an index of another kind (before the last rebuild) is made again from the page's change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

import structlog

from pipelines.ingest.accept import newer, reference
from pipelines.ingest.chunk import pieces_of
from pipelines.ingest.documents.attachments import NOTHING, Attached
from pipelines.ingest.embed import Embedding
from pipelines.ingest.handlers import chunked, now
from pipelines.ingest.index import apply_part
from pipelines.ingest.ports import ChunkAddress, HeadConflict, KnownPages, PageStore, Place
from pipelines.runtime.bus import LogReader
from pipelines.runtime.embedder import Embedder
from pipelines.runtime.errors import Permanent, Retryable, WrongUse
from pipelines.runtime.indexes import IndexGone
from pipelines.runtime.record import Record
from pipelines.runtime.retry import Pause, RetryPolicy, patiently
from schemas.base import WireError
from schemas.head import Head, Origin
from schemas.ingest import Chunker, PageChunks, PageEmbeddings
from schemas.page import ChangeRef, PageChange, PageDocument
from schemas.rebuild import RebuildSource

log = structlog.get_logger(__name__)

AT_ONCE = 16  # pages made side by side
KEPT_FAILURES = 20
WEIGHT = 64 * 1024  # bytes decoded until others get their turn


@dataclass(frozen=True)
class BuildTarget:
    """What the index wants. `model` loads the embedder when it is first needed."""

    site: str
    embedder: str
    fingerprint: str
    dims: int
    chunker: Chunker
    model: Callable[[], Awaitable[Embedder]]


@dataclass
class BuildTally:
    """What was put in so far."""

    pages: int = 0
    chunks: int = 0
    embedded: int = 0
    remade: int = 0
    failures: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)

    def fail(self, page_key: str, reason: str) -> None:
        self.failures += 1
        if len(self.failed) < KEPT_FAILURES:
            self.failed.append((page_key, reason))


NOWHERE = Origin()


@dataclass(frozen=True)
class SourceMessage:
    """A message of the source topic; one of `whole`, `page`, `part`."""

    change: ChangeRef
    whole: PageChange | None = None
    page: PageChunks | None = None
    part: PageEmbeddings | None = None
    origin: Origin = NOWHERE


class BatchedPageStore(PageStore):
    """An index of which the heads of one batch are known, and which need not be searchable in between."""

    def __init__(self, store: PageStore, heads: Mapping[str, Head], shown: Mapping[str, Head]) -> None:
        """`shown`: heads of the live index."""
        self._store = store
        self._heads = dict(heads)
        self._shown = shown

    @property
    def model(self) -> str:
        return self._store.model

    @property
    def chunker(self) -> str:
        return self._store.chunker

    async def heads(self, page_keys: Iterable[str]) -> Mapping[str, Head]:
        return {key: self._heads[key] for key in page_keys if key in self._heads}

    async def write(self, part: PageEmbeddings, head: Head | None) -> bool:
        if head is None:
            return await self._store.write(part, None)
        made = self._as_shown(head)
        try:
            written = await self._store.write(part, made)
        except HeadConflict:
            self._heads |= await self._store.heads([part.change.page_key])
            raise
        self._heads[part.change.page_key] = made  # its token is out of date now: found when it matters
        return written

    async def remove(self, change: ChangeRef, chunks: Sequence[ChunkAddress]) -> None:
        await self._store.remove(change, chunks)

    async def keep(self, part: PageEmbeddings, place: Place) -> None:
        await self._store.keep(part, place)

    async def kept(self, part: PageEmbeddings) -> Mapping[int, Place]:
        return await self._store.kept(part)

    async def take(self, part: PageEmbeddings, number: int) -> PageEmbeddings:
        return await self._store.take(part, number)

    async def drop(self, part: PageEmbeddings, places: Mapping[int, Place]) -> None:
        await self._store.drop(part, places)

    async def strays(self, change: ChangeRef) -> Sequence[ChunkAddress]:
        return []  # the audit that follows finds them

    async def regroup(self, head: Head, change: ChangeRef | None, groups: Sequence[str] | None) -> bool:
        return await self._store.regroup(head, change, groups)

    async def refresh(self) -> None:
        """Not now."""

    def _as_shown(self, head: Head) -> Head:
        """An editor's receipt tells of the save, not of the rebuild; and its products stand where they stood."""
        shown = self._shown.get(head.change.page_key)
        if shown is None or shown.ahead or shown.change.revision != head.change.revision:
            return head
        return head.model_copy(
            update={
                "cost": shown.cost,
                "settled_at": shown.settled_at,
                "origin": shown.origin.furthest(head.origin.beside(shown.origin)),
                "last_part": max(shown.last_part, head.last_part),
                "losers": shown.losers.furthest(head.losers.beside(shown.origin)),
            }
        )


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
        read: Callable[[PageDocument], Awaitable[Attached]],
        policy: RetryPolicy,
    ) -> None:
        """`read` gives the text of a page's attachments."""
        self._source = source
        self._target = target
        self._store = store
        self._live = live
        self._embedding = embedding
        self._changes = changes
        self._read = read
        self._policy = policy
        self._prefix = f"{target.site}:".encode()
        self._gate = asyncio.Semaphore(AT_ONCE)
        self._named: set[str] = set()  # pages that are lost in the log
        self.tally = BuildTally()

    def take(self) -> BuildTally:
        """What was put in since the last call."""
        tally, self.tally = self.tally, BuildTally()
        return tally

    async def decode(self, batch: Sequence[Record]) -> dict[str, list[SourceMessage]]:
        """The site's messages of a batch by page, oldest first. What cannot be decoded is a dead letter already."""
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
        """Put decoded messages into the index; returns when all are in, or known to be impossible.

        Args:
            settled: Told after each page how many messages more are done with.

        Raises:
            Retryable: a service is away for longer than `retry_for`; the batch may be done again.
            WrongUse: nothing will work before somebody has put it right.
        """
        if not pages:
            return
        heads, shown = await patiently(lambda: self._look(list(pages)), self._pause())
        store = BatchedPageStore(self._store, heads, shown)
        waiting = {key: [g for g in history if not self._there(g, heads.get(key))] for key, history in pages.items()}
        for key, history in pages.items():
            if winner := await patiently(partial(self._lost, history, heads.get(key), shown.get(key)), self._pause()):
                waiting[key] = self._without_log(key, winner)
        work = [self._page(key, history, store, settled) for key, history in waiting.items() if history]
        for problem in await asyncio.gather(*work, return_exceptions=True):
            if problem is not None:
                raise problem

    async def _look(self, keys: list[str]) -> tuple[Mapping[str, Head], Mapping[str, Head]]:
        return await asyncio.gather(self._store.heads(keys), self._live.heads(self._target.site, keys))

    def _there(self, given: SourceMessage, head: Head | None) -> bool:
        """Whether the index shows this change, or one that wins over it, as it is wanted."""
        if head is None or newer(given.change, head.change):
            return False
        if newer(head.change, given.change) or (head.state == "deleted" and given.change.op == "delete"):
            return True
        # The same revision once more, further on in the log: the one applied last stands, as in the live index.
        again = (given.change.partition, given.change.offset) > (head.change.partition, head.change.offset)
        return not again and not head.ahead and self._fits(head.model, head.chunker)

    def _fits(self, model: str, chunker: str) -> bool:
        return (model, chunker) == (self._target.fingerprint, self._target.chunker.fingerprint)

    def _decode(self, record: Record) -> SourceMessage | None:
        match self._source:
            case "changes":
                change = PageChange.decode(record.value)
                ref = reference(change, record.partition, record.offset)
                return SourceMessage(ref, whole=change, origin=_origin(ref))
            case "chunks":
                page = PageChunks.decode(record.value)
                origin = _origin(page.change, chunks=record.offset, chunks_in=record.partition)
                return SourceMessage(page.change, page=page, origin=origin)
            case "embeddings":
                part = PageEmbeddings.decode(record.value)
                if part.superseded:
                    return None
                origin = _origin(
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
        """Put in what wins; if that is impossible, what it would have won over."""
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
        """The change that visitors see, if it won over these and is in the log no more.

        When the stages stood still for longer than compaction waits, it took the winner before the index stage could
        put that back on top (requeue.py), and the topic gives only what lost.
        """
        if shown is None or not all(newer(shown.change, given.change) for given in history):
            return None
        winner = shown.change
        if head is not None and not newer(winner, head.change):
            return None
        if all(given.change.partition == winner.partition and given.change.offset < winner.offset for given in history):
            return None  # as it should be: the winner comes later
        with suppress(WireError):
            if await self._from_log(winner):
                return None
        return winner

    def _without_log(self, key: str, winner: ChangeRef) -> list[SourceMessage]:
        """What to put in for it. A delete needs no more than is known of it. Of a text that is gone there is nothing to
        put in: the older one perhaps more people may see, and what is missing keeps the index from being promoted.
        """
        if winner.op == "delete":
            return [SourceMessage(winner, origin=_origin(winner))]
        if key not in self._named:
            self._named.add(key)
            self.tally.fail(
                key,
                f"visitors see revision {winner.revision}, and the change log has only an older one: save the page "
                f"again, or show the older one with `pagewire audit {winner.site} --repair --force`",
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
        for part in await self._parts(given):
            await apply_part(part, store, now, given.origin)
            self.tally.chunks += len(part.chunks)
            if part.part == part.parts - 1 and not part.ahead:
                self.tally.pages += 1
                self.tally.embedded += part.embedded if part is not given.part else 0

    async def _parts(self, given: SourceMessage) -> Sequence[PageEmbeddings]:
        """The message as the index wants it."""
        change = given.change
        if change.op == "delete":
            return [self._delete(change)]
        part, page = given.part, given.page
        if part is not None and part.ahead:
            return [part]
        if part is not None and self._fits(part.model, part.chunker):
            return [part]
        if part is not None and part.part < part.parts - 1:
            return []  # made again as a whole, with the last part
        if page is None or page.chunker != self._target.chunker:
            whole = given.whole or await self._from_log(change)
            if whole is None:
                # Compacted away: a later change of the page is in the log, and so in the topics.
                log.info("skipped: a later change of the page follows", page=change.page_key, revision=change.revision)
                return []
            self.tally.remade += given.whole is None
            attached = await self._attached(whole, page)
            page = await asyncio.to_thread(
                chunked, whole, self._target.chunker, change.partition, change.offset, attached
            )
        return await self._embedding.embed_with(await self._target.model(), page, given.origin.chunks)

    def _delete(self, change: ChangeRef) -> PageEmbeddings:
        return PageEmbeddings(
            change=change,
            meta=None,
            chunker=self._target.chunker.fingerprint,
            embedder=self._target.embedder,
            model=self._target.fingerprint,
            dims=self._target.dims,
            part=0,
            parts=1,
        )

    async def _attached(self, whole: PageChange, cut: PageChunks | None) -> Attached:
        """The text of the page's attachments: as it was read before, if that is at hand."""
        if cut is not None:
            return Attached(tuple(pieces_of(cut.chunks)), cut.notes)
        if whole.page is None or not whole.page.attachments:
            return NOTHING
        attached = await self._read(whole.page)
        if attached.failed:
            log.warning("attachments left out", page=whole.page_key, why=attached.failed)
        return attached

    async def _from_log(self, ref: ChangeRef) -> PageChange | None:
        for record in await self._changes.read(ref.partition, ref.offset, ref.offset + 1):
            change = PageChange.decode(record.value)
            if (change.page_key, change.revision) == (ref.page_key, ref.revision):
                return change
        return None

    def _pause(self) -> Pause:
        """As the policy says, for `retry_for` from now on; an index that is gone does not come back."""
        deadline = asyncio.get_running_loop().time() + self._policy.retry_for

        def pause(err: Retryable, failures: int) -> float | None:
            wait = self._policy.wait(failures)
            if isinstance(err, IndexGone) or asyncio.get_running_loop().time() + wait > deadline:
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


def _origin(change: ChangeRef, **products: int | None) -> Origin:
    """Where a change stands in the log, and its products in their topics."""
    return Origin.model_validate({"changes": change.offset, "changes_in": change.partition, **products})
