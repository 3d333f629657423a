"""Batched store: an index with the heads of a batch of pages read in advance, to write these pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pipelines.ingest.ports import ChunkAddress, HeadConflict, PageStore, PartPosition
from schemas.head import Head
from schemas.ingest import PageEmbeddings
from schemas.page import ChangeRef


class BatchedPageStore(PageStore):
    """An index for writing one batch, whose heads were read before; it need not be searchable in between."""

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
        self._heads[part.change.page_key] = made  # its token is outdated; a conflicting write finds that out
        return written

    async def remove(self, change: ChangeRef, chunks: Sequence[ChunkAddress]) -> None:
        await self._store.remove(change, chunks)

    async def keep(self, part: PageEmbeddings, place: PartPosition) -> None:
        await self._store.keep(part, place)

    async def kept(self, part: PageEmbeddings) -> Mapping[int, PartPosition]:
        return await self._store.kept(part)

    async def take(self, part: PageEmbeddings, number: int) -> PageEmbeddings:
        return await self._store.take(part, number)

    async def drop(self, part: PageEmbeddings, places: Mapping[int, PartPosition]) -> None:
        await self._store.drop(part, places)

    async def strays(self, change: ChangeRef) -> Sequence[ChunkAddress]:
        return []  # the audit afterwards finds them

    async def regroup(self, head: Head, change: ChangeRef | None, groups: Sequence[str] | None) -> bool:
        return await self._store.regroup(head, change, groups)

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
