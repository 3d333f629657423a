"""Page builder: makes the records of one change for an index and writes them; in the rebuild's process, or by workers.

whole change ─▶ cut ──▶ embed ─▶ the index, by the same rules as the index stage
chunks ───────────────▶ embed ─▶
embeddings that fit ───────────▶
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import structlog

from pipelines.ingest.accept import newer
from pipelines.ingest.chunk import pieces_of
from pipelines.ingest.documents.attachments import NOTHING, Attached
from pipelines.ingest.embed import Embedding
from pipelines.ingest.handlers import chunked, now
from pipelines.ingest.index import apply_part
from pipelines.ingest.ports import ChunkAddress, HeadConflict, PageStore
from pipelines.runtime.bus import LogReader
from pipelines.runtime.embedder import Embedder, Embedders
from pipelines.runtime.errors import Permanent, SettingsError, WrongUse
from pipelines.runtime.indexes import IndexInfo
from schemas.head import Head, LogPositions
from schemas.ingest import Chunker, PageChunks, PageEmbeddings
from schemas.page import ChangeRef, PageChange, PageDocument


class BatchedPageStore:
    """An index for writing one batch, whose heads were read before; it need not be searchable in between."""

    def __init__(self, store: PageStore, heads: Mapping[str, Head], shown: Mapping[str, Head]) -> None:
        """`shown`: heads of the live index."""
        self._store = store
        self._heads = dict(heads)
        self._shown = shown
        self.model, self.chunker = store.model, store.chunker
        self.remove, self.regroup = store.remove, store.regroup
        self.keep, self.kept, self.take, self.drop = store.keep, store.kept, store.take, store.drop

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
        self._heads[part.change.page_key] = made  # its token is outdated; a conflicting write finds that out
        return written

    async def strays(self, change: ChangeRef) -> Sequence[ChunkAddress]:
        return []  # the audit afterwards finds them

    async def refresh(self) -> None:
        """Do nothing: no refresh during a rebuild."""

    def _as_shown(self, head: Head) -> Head:
        """Do nothing: receipts are about saves, not about the rebuild, and the products keep their offsets."""
        shown = self._shown.get(head.change.page_key)
        if shown is not None and not shown.ahead and shown.change.revision == head.change.revision:
            head = head.model_copy(update={"cost": shown.cost, "settled_at": shown.settled_at})
        if shown is None or shown.ahead or shown.change != head.change:
            # What the live index shows may stand behind it. So its place in ingest.embeddings does not count before
            # the index stage has come there (Head.unplaced).
            return head.model_copy(update={"origin": head.origin.model_copy(update={"embeddings": 0}), "last_part": 0})
        return head.model_copy(
            update={
                "origin": shown.origin.latest(head.origin.in_partitions_of(shown.origin)),
                "last_part": max(shown.last_part, head.last_part),
                "losers": shown.losers.latest(head.losers.in_partitions_of(shown.origin)),
            }
        )


log = structlog.get_logger(__name__)

NOWHERE = LogPositions()
ReadAttachments = Callable[[str, PageDocument], Awaitable[Attached]]


@dataclass(frozen=True)
class SourceMessage:
    """A message of the source topic; one of `whole`, `page`, `part`."""

    change: ChangeRef
    whole: PageChange | None = None
    page: PageChunks | None = None
    part: PageEmbeddings | None = None
    origin: LogPositions = NOWHERE


@dataclass(frozen=True)
class Built:
    """The counts of one written message."""

    pages: int = 0
    chunks: int = 0
    embedded: int = 0
    remade: int = 0


@dataclass(frozen=True)
class BuildTarget:
    """Embedder and chunker of the index. `model` loads the embedder at the first use."""

    site: str
    embedder: str
    fingerprint: str
    dims: int
    chunker: Chunker
    model: Callable[[], Awaitable[Embedder]]

    @classmethod
    def of(cls, info: IndexInfo, embedders: Embedders) -> BuildTarget:
        """The target of an index. Raises: IndexUnfit: this version does not know its chunker."""

        async def model() -> Embedder:
            try:
                made = await embedders.by_name(info.embedder)
            except WrongUse:
                raise
            except Permanent as err:  # the cause is not the page
                raise SettingsError(f"{info.embedder}, which {info.name} is for, cannot be loaded here: {err}") from err
            if made.fingerprint != info.model:
                raise SettingsError(f"{info.name} is for {info.model}, but {info.embedder} is {made.fingerprint}")
            return made

        return cls(info.site, info.embedder, info.model, info.dims, info.cut, model)

    def fits(self, model: str, chunker: str) -> bool:
        return (model, chunker) == (self.fingerprint, self.chunker.fingerprint)

    def shown(self, change: ChangeRef, head: Head | None) -> bool:
        """Whether the page's head shows this change, or a newer one, with the right model and chunker."""
        if head is None or newer(change, head.change):
            return False
        if newer(head.change, change) or (head.state == "deleted" and change.op == "delete"):
            return True
        # The same revision again, later in the log: the last one wins, as in the live index.
        again = (change.partition, change.offset) > (head.change.partition, head.change.offset)
        return not again and not head.ahead and self.fits(head.model, head.chunker)


class PageBuilder:
    """Builds for one index. Calls may come in any order: the index's heads and revisions decide."""

    def __init__(self, target: BuildTarget, embedding: Embedding, changes: LogReader, read: ReadAttachments) -> None:
        """`read` returns the text of a page's attachments."""
        self._target = target
        self._embedding = embedding
        self._changes = changes
        self._read = read

    async def build(self, given: SourceMessage, store: PageStore) -> Built:
        """Write a message. Raises: Retryable, Permanent, WireError."""
        parts, remade = await self._parts(given)
        pages = chunks = embedded = 0
        for part in parts:
            await apply_part(part, store, now, given.origin)
            chunks += len(part.chunks)
            if part.part == part.parts - 1 and not part.ahead:
                pages += 1
                embedded += part.embedded if part is not given.part else 0
        return Built(pages, chunks, embedded, remade)

    async def from_log(self, ref: ChangeRef) -> PageChange | None:
        """The change from the log; None: it is gone."""
        for record in await self._changes.read(ref.partition, ref.offset, ref.offset + 1):
            change = PageChange.decode(record.value)
            if (change.page_key, change.revision) == (ref.page_key, ref.revision):
                return change
        return None

    async def _parts(self, given: SourceMessage) -> tuple[Sequence[PageEmbeddings], int]:
        """The parts to write, and how many changes were read again for them."""
        change = given.change
        if change.op == "delete":
            return [self._delete(change)], 0
        part, page, remade = given.part, given.page, 0
        if part is not None and (part.ahead or self._target.fits(part.model, part.chunker)):
            return [part], 0
        if part is not None and part.part < part.parts - 1:
            return [], 0  # the whole page is made again with the last part
        if page is None or page.chunker != self._target.chunker:
            whole = given.whole or await self.from_log(change)
            if whole is None:
                # Compacted away: a later change of the page is in the log and in the topics.
                log.info("skipped: a later change of the page follows", page=change.page_key, revision=change.revision)
                return [], 0
            remade = int(given.whole is None)
            attached = await self._attached(whole, page)
            page = await asyncio.to_thread(
                chunked, whole, self._target.chunker, change.partition, change.offset, attached
            )
        return await self._embedding.embed_with(await self._target.model(), page, given.origin.chunks), remade

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
        """The text of the page's attachments, from an earlier read if there is one."""
        if cut is not None:
            return Attached(tuple(pieces_of(cut.chunks)), cut.notes)
        if whole.page is None or not whole.page.attachments:
            return NOTHING
        attached = await self._read(whole.site, whole.page)
        if attached.failed:
            log.warning("attachments left out", page=whole.page_key, why=attached.failed)
        return attached


def origin_of(change: ChangeRef, **products: int | None) -> LogPositions:
    """The offsets of a change in the log, and of its products in their topics."""
    return LogPositions.model_validate({"changes": change.offset, "changes_in": change.partition, **products})
