"""Embed what is new, reuse what is known: a save without a text change costs no model call."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from cachetools import LRUCache
from more_itertools import chunked

from pipelines.ingest.embedding_plan import Planned, embed_hash, parts, plan
from pipelines.ingest.ports import KnownPages
from pipelines.ingest.unit_plan import PlannedUnit, known_vectors, plan_units
from pipelines.runtime.embedder import Embedder, SiteEmbedders
from schemas.compact import compact
from schemas.ingest import EmbeddedChunk, PageChunks, PageEmbeddings, Vector32

SLICE = 64  # texts a call to the model
CACHE_BYTES = 64 * 1024 * 1024  # vectors of this process's own recent work, not yet findable in the index
UNIT_CACHE_BYTES = 16 * 1024 * 1024  # the same of units: 40,000 of 384 dimensions
AT_ONCE = 10_000  # characters; the units of a larger page are cut in a thread


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
        self._units: LRUCache[str, bytes] = LRUCache(UNIT_CACHE_BYTES, getsizeof=len)
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
            made = await model.passages([missing[key] for key in wanted], urgent=self._urgent)
            for key, vector in zip(wanted, made, strict=True):
                vectors[key] = vector
                # At once: when this page fails later on, the next try does not pay for it again.
                self._cache.put(key, vector)
        units = await _units(page)
        unit_vectors = await self._unit_vectors(model, page, units)
        chunks = [
            EmbeddedChunk(
                field=p.chunk.field,
                ord=p.chunk.ord,
                text=p.chunk.text,
                place=p.chunk.place,
                embed_hash=p.embed_hash,
                vector=vectors[p.embed_hash],
                units=tuple(u.unit for u in own),
                unit_vectors=b"".join(unit_vectors[u.sense] for u in own),
            )
            for p, own in zip(planned, units, strict=True)
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

    async def _unit_vectors(
        self, model: Embedder, page: PageChunks, planned: Sequence[Sequence[PlannedUnit]]
    ) -> Mapping[str, bytes]:
        """Compact vectors by what is embedded: from this process, from the page as it is in the index, or made."""
        keys = {u.sense: embed_hash(u.sense, "unit", model.fingerprint) for own in planned for u in own}
        found = {sense: vector for sense, key in keys.items() if (vector := self._units.get(key)) is not None}
        if len(found) < len(keys):
            change = page.change
            known = known_vectors(await self._known.units(change.site, change.page_key, model.fingerprint))
            found |= {sense: known[sense] for sense in keys.keys() - found.keys() if sense in known}
        for wanted in chunked([sense for sense in keys if sense not in found], SLICE):
            made = compact(await model.passages(wanted, urgent=self._urgent))
            for sense, vector in zip(wanted, made, strict=True):
                found[sense] = vector
                if len(vector) <= UNIT_CACHE_BYTES:
                    self._units[keys[sense]] = vector  # at once, as above
        return found


async def _units(page: PageChunks) -> list[tuple[PlannedUnit, ...]]:
    if sum(len(chunk.text) for chunk in page.chunks) <= AT_ONCE:
        return plan_units(page)
    return await asyncio.to_thread(plan_units, page)
