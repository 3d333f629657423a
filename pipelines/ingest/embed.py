"""Embed what is new, reuse what is known: a save without a text change costs no model call."""

from __future__ import annotations

from collections.abc import Sequence

from cachetools import LRUCache
from more_itertools import chunked

from pipelines.ingest.embedding_plan import Planned, parts, plan
from pipelines.ingest.ports import KnownPages
from pipelines.runtime.embedder import Embedder, SiteEmbedders
from schemas.ingest import EmbeddedChunk, PageChunks, PageEmbeddings, Vector32

SLICE = 64  # texts a call to the model
CACHE_BYTES = 64 * 1024 * 1024  # vectors of this process's own recent work, not yet findable in the index


class VectorCache:
    """The vectors used last, up to a number of bytes."""

    def __init__(self, limit: int = CACHE_BYTES) -> None:
        self._vectors: LRUCache[str, Vector32] = LRUCache(limit, getsizeof=lambda vector: vector.nbytes)

    def get(self, embed_hash: str) -> Vector32 | None:
        return self._vectors.get(embed_hash)

    def put(self, embed_hash: str, vector: Vector32) -> None:
        if vector.nbytes <= self._vectors.maxsize:
            self._vectors[embed_hash] = vector.copy()  # a row of a batch would keep the whole batch in memory


class Embedding:
    """The embed stage's work. One per process."""

    def __init__(
        self, models: SiteEmbedders, known: KnownPages, cache: VectorCache | None = None, *, urgent: bool = True
    ) -> None:
        """`urgent`: goes before what is not, where both ask the same model."""
        self._models = models
        self._known = known
        self._cache = cache or VectorCache()
        self._urgent = urgent

    async def embed(self, page: PageChunks, chunks_offset: int = 0) -> list[PageEmbeddings]:
        """The parts of the page's embeddings, and a tombstone for each part that its last revision had and it has not.

        In the compacted topic a part stays until its key is written again: the tombstone, an empty part, does that.

        Args:
            chunks_offset: Where `page` stands in ingest.chunks.
        """
        change = page.change
        model = await self._models.for_new(change.site)
        current = await self.embed_with(model, page, chunks_offset)
        head = (await self._known.heads(change.site, [change.page_key])).get(change.page_key)
        superseded = [
            current[0].model_copy(update={"part": n, "superseded": True, "chunks": ()})
            for n in range(len(current), head.parts if head else 0)
        ]
        return current + superseded

    async def embed_with(self, model: Embedder, page: PageChunks, chunks_offset: int = 0) -> list[PageEmbeddings]:
        """The parts of the page's embeddings by this model."""
        planned = plan(page, model.fingerprint)
        vectors = await self._look_up(page.change.site, planned)
        missing = {p.embed_hash: p.text for p in planned if p.embed_hash not in vectors}
        for wanted in chunked(missing, SLICE):
            made = await model.passages([missing[embed_hash] for embed_hash in wanted], urgent=self._urgent)
            for embed_hash, vector in zip(wanted, made, strict=True):
                vectors[embed_hash] = vector
                # At once: when this page fails later on, the next try does not pay for it again.
                self._cache.put(embed_hash, vector)
        chunks = [
            EmbeddedChunk(
                field=p.chunk.field,
                ord=p.chunk.ord,
                text=p.chunk.text,
                place=p.chunk.place,
                embed_hash=p.embed_hash,
                vector=vectors[p.embed_hash],
            )
            for p in planned
        ]
        return parts(
            page,
            chunks,
            embedder=model.spec,
            model=model.fingerprint,
            dims=model.dims,
            embedded=len(missing),
            chunks_offset=chunks_offset,
        )

    async def _look_up(self, site: str, planned: Sequence[Planned]) -> dict[str, Vector32]:
        found: dict[str, Vector32] = {}
        for p in planned:
            if (vector := self._cache.get(p.embed_hash)) is not None:
                found[p.embed_hash] = vector
        rest = list({p.embed_hash for p in planned} - found.keys())
        return found | dict(await self._known.vectors(site, rest))
