"""Embed what is new, reuse what is known: a save without a text change costs no model call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence

from cachetools import LRUCache

from pipelines.ingest.embedding_plan import (
    PlannedChunk,
    PlannedUnit,
    embed_hash,
    known_vectors,
    parts,
    plan,
    plan_units,
)
from pipelines.ingest.ports import KnownPages
from pipelines.runtime.embedder import Embedder, Embedders, embedded_passages
from schemas.compact import compact
from schemas.ingest import ChunkVectors, EmbeddedChunk, PageChunks, PageEmbeddings

# Texts a call to the model: most pages are one. So pages are done one after the other, in the order in which they came;
# of pages that ask several times, all are half done before the first one is searchable.
SLICE = 256
CACHE_BYTES = 64 * 1024 * 1024  # vectors of this process's own recent work, not yet findable in the index
UNIT_CACHE_BYTES = 16 * 1024 * 1024  # the same of units: 40,000 of 384 dimensions
TOKEN_BYTES = 200  # of a sparse vector, for each of its tokens
AT_ONCE = 10_000  # characters; the units of a larger page are cut in a thread


class VectorCache:
    """The vectors used last, up to a number of bytes."""

    def __init__(self, limit: int = CACHE_BYTES) -> None:
        self._vectors: LRUCache[str, ChunkVectors] = LRUCache(limit, getsizeof=_bytes)

    def get(self, embed_hash: str) -> ChunkVectors | None:
        return self._vectors.get(embed_hash)

    def put(self, embed_hash: str, made: ChunkVectors) -> None:
        if _bytes(made) <= self._vectors.maxsize:
            # A row of a batch would keep the whole batch in memory.
            self._vectors[embed_hash] = made._replace(vector=made.vector.copy())


class Embedding:
    """The embed stage's work. One per process."""

    def __init__(
        self, models: Embedders, known: KnownPages, cache: VectorCache | None = None, *, urgent: bool = True
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
        units = await _units(page)
        hashes = {u.sense: embed_hash(u.sense, "unit", model.fingerprint) for own in units for u in own}
        vectors, unit_vectors = await self._known_vectors(model, page, planned, hashes)
        missing = {p.embed_hash: p.text for p in planned if p.embed_hash not in vectors}
        unknown = {sense: key for sense, key in hashes.items() if sense not in unit_vectors}
        async for made, made_units in self._make(model, missing, unknown):
            vectors |= made
            unit_vectors |= made_units
        chunks = [
            EmbeddedChunk(
                field=p.chunk.field,
                ord=p.chunk.ord,
                text=p.chunk.text,
                place=p.chunk.place,
                embed_hash=p.embed_hash,
                vector=vectors[p.embed_hash].vector,
                sparse=vectors[p.embed_hash].sparse,
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

    async def _known_vectors(
        self, model: Embedder, page: PageChunks, planned: Sequence[PlannedChunk], hashes: Mapping[str, str]
    ) -> tuple[dict[str, ChunkVectors], dict[str, bytes]]:
        """Of chunks by their hash, of units by what is embedded. Side by side, because an editor waits for both."""
        return await asyncio.gather(self._look_up(page.change.site, planned), self._look_up_units(model, page, hashes))

    async def _look_up(self, site: str, planned: Sequence[PlannedChunk]) -> dict[str, ChunkVectors]:
        found: dict[str, ChunkVectors] = {}
        for p in planned:
            if (made := self._cache.get(p.embed_hash)) is not None:
                found[p.embed_hash] = made
        rest = list({p.embed_hash for p in planned} - found.keys())
        return found | dict(await self._known.vectors(site, rest))

    async def _look_up_units(self, model: Embedder, page: PageChunks, hashes: Mapping[str, str]) -> dict[str, bytes]:
        """Compact vectors by what is embedded: from this process, or from the page as it is in the index."""
        found = {sense: vector for sense, key in hashes.items() if (vector := self._units.get(key)) is not None}
        if len(found) < len(hashes):
            change = page.change
            known = known_vectors(await self._known.units(change.site, change.page_key, model.fingerprint))
            found |= {sense: known[sense] for sense in hashes.keys() - found.keys() if sense in known}
        return found

    async def _make(
        self, model: Embedder, missing: Mapping[str, str], unknown: Mapping[str, str]
    ) -> AsyncGenerator[tuple[dict[str, ChunkVectors], dict[str, bytes]], None]:
        """Vectors, slice by slice: of chunks by their hash, compact ones of units by what is embedded.

        Args:
            missing: texts of chunks by their hash.
            unknown: hashes of units by what is embedded.
        """
        texts = [*missing.values(), *unknown]
        for place in range(0, len(texts), SLICE):
            wanted = texts[place : place + SLICE]
            rows, weights = await embedded_passages(model, wanted, urgent=self._urgent)
            of_chunks = min(max(len(missing) - place, 0), len(wanted))
            both = map(ChunkVectors, rows[:of_chunks], weights)
            made = dict(zip([*missing][place:], both, strict=False))
            units = dict(zip(wanted[of_chunks:], compact(rows[of_chunks:]), strict=True))
            # Kept at once: when this page fails later on, the next try does not pay for it again.
            for key, each in made.items():
                self._cache.put(key, each)
            for sense, small in units.items():
                if len(small) <= UNIT_CACHE_BYTES:
                    self._units[unknown[sense]] = small
            yield made, units


def _bytes(made: ChunkVectors) -> int:
    return made.vector.nbytes + TOKEN_BYTES * len(made.sparse)


async def _units(page: PageChunks) -> list[tuple[PlannedUnit, ...]]:
    if sum(len(chunk.text) for chunk in page.chunks) <= AT_ONCE:
        return plan_units(page)
    return await asyncio.to_thread(plan_units, page)
