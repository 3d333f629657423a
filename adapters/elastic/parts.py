"""Parts of pages that wait for their page's other parts, in an index of their own without searches.

A part is one unindexed document, so waiting parts cost no vector index and no mapping of a site's index. A part that
waits for a dead letter expires with that dead letter.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import blake2b
from time import monotonic
from typing import Any

from elasticsearch import AsyncElasticsearch

from adapters.elastic.client import explained
from adapters.elastic.indexes import PARTS, ElasticIndexes
from adapters.elastic.reading import documents
from adapters.elastic.writer import IndexMissing, Write, Writer
from pipelines.ingest.ports import PartGone, PartPosition
from schemas.ingest import PageEmbeddings

LIFETIME = "now-14d"  # as long as dead letters are kept (schemas.topics), since a redrive completes the page
SWEEP_EVERY = 3_600.0  # seconds


class WaitingParts:
    """Stores waiting parts of all sites. One per process."""

    def __init__(self, es: AsyncElasticsearch, indexes: ElasticIndexes, writer: Writer) -> None:
        self._es = es
        self._indexes = indexes
        self._writer = writer
        self._swept: float | None = None

    async def keep(self, index: str, part: PageEmbeddings, place: PartPosition) -> None:
        """Store a part for this index. Of two copies, the later one in the topic wins."""
        document = {
            "index": index,
            "page_key": part.change.page_key,
            "at": datetime.now(UTC).isoformat(),
            "offset": place.offset,
            "part": {"json": part.encode().decode(), "partition": place.partition, "change": place.change},
        }
        write = Write(PARTS, _id(index, part, part.part), place.offset, document, aliased=False)
        await self._sweep()
        try:
            await self._writer.write([write])
        except IndexMissing:  # deleted meanwhile
            await self._indexes.ensure_system(PARTS)
            await self._writer.write([write])

    async def kept(self, index: str, part: PageEmbeddings) -> Mapping[int, PartPosition]:
        """Places of the stored parts of the same making, by part number; read in real time."""
        numbers = {_id(index, part, number): number for number in range(part.parts)}
        found = await self._read(list(numbers), "offset", "part.partition", "part.change")
        return {numbers[id]: _place(source) for id, source in found.items()}

    async def take(self, index: str, part: PageEmbeddings, number: int) -> PageEmbeddings:
        """A stored part. Raises: PartGone."""
        id = _id(index, part, number)
        found = await self._read([id], "part")
        if id not in found:
            raise PartGone(f"part {number} of {part.change.page_key} is not in {PARTS} any more")
        return PageEmbeddings.decode(found[id]["part"]["json"].encode())

    async def drop(self, index: str, part: PageEmbeddings, places: Mapping[int, PartPosition]) -> None:
        """Delete stored parts, except copies with a later place."""
        ids = ((_id(index, part, number), place.offset) for number, place in places.items())
        await self._writer.write([Write(PARTS, id, offset, None, aliased=False) for id, offset in ids])

    async def _read(self, ids: list[str], *source: str) -> dict[str, dict[str, Any]]:
        return await documents(self._es, "reading parts that wait for others", PARTS, ids, source)

    async def _sweep(self) -> None:
        """Create the index, and delete expired parts."""
        if self._swept is not None and monotonic() - self._swept < SWEEP_EVERY:
            return
        await self._indexes.ensure_system(PARTS)
        with explained("looking for parts whose pages were never complete"):
            answer = await self._es.search(
                index=PARTS, query={"range": {"at": {"lt": LIFETIME}}}, source=False, version=True, size=1_000
            )
        old = [Write(PARTS, hit["_id"], hit["_version"], None, aliased=False) for hit in answer["hits"]["hits"]]
        await self._writer.write(old)
        self._swept = monotonic()


def _place(source: Mapping[str, Any]) -> PartPosition:
    part = source.get("part", {})
    change = part.get("change")
    return PartPosition(source["offset"], part.get("partition"), (change[0], change[1]) if change else None)


def _id(index: str, part: PageEmbeddings, number: int) -> str:
    return blake2b(f"{index} {part.making} {number}".encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()
