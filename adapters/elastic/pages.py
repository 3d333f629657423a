"""Pages in an index: heads (which order revisions), chunks, known vectors; and the receipts of all sites."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from elasticsearch import AsyncElasticsearch, NotFoundError
from more_itertools import chunked

from adapters.elastic import chunk_units
from adapters.elastic.client import explained
from adapters.elastic.indexes import RECEIPTS, ElasticIndexes, added_mapping
from adapters.elastic.parts import WaitingParts
from adapters.elastic.reading import MISSING, DocumentLookup, answer_of, batches, documents, sources
from adapters.elastic.search import STAMP
from adapters.elastic.writer import IndexMissing, Write, WriteOutcome, Writer
from pipelines.ingest.embedding_plan import KnownUnits
from pipelines.ingest.ports import HeadConflict, PartPosition
from pipelines.runtime.indexes import IndexGone, IndexInfo
from pipelines.runtime.record import Lane
from schemas.head import Head, Token
from schemas.ingest import ChunkUnit, ChunkVectors, EmbeddedChunk, PageEmbeddings, ReceiptEvent
from schemas.keys import chunk_id, head_id, path_of
from schemas.labels import label_tokens
from schemas.page import ChangeRef, FieldName
from text.folding import fold
from text.words import indexed, stems

MAX_LOOKUP = 1_000  # hashes a search
UNITS_LOOKUP = 500  # chunks a search; some 8 KB each
REGROUPED = 200  # chunks read and written at once, with their vectors
NO_GROUP = ("",)  # for an empty list of groups, which would mean "no restriction"; no group has an empty name


class PageIndex:
    """The pages of one index, live or not. Writes go to this index, even if another one is promoted meanwhile."""

    def __init__(
        self, es: AsyncElasticsearch, heads: DocumentLookup, writer: Writer, parts: WaitingParts, info: IndexInfo
    ) -> None:
        self._es = es
        self._heads = heads
        self._writer = writer
        self._parts = parts
        self.info = info

    @property
    def model(self) -> str:
        return self.info.model

    @property
    def chunker(self) -> str:
        return self.info.chunker

    async def heads(self, page_keys: Iterable[str]) -> dict[str, Head]:
        """Heads by page key, read in real time; unknown pages are missing. Raises: IndexGone."""
        ids = {head_id(key): key for key in page_keys}
        found = await self._heads.read(self.info.name, ids)
        if any(doc.get("error", {}).get("type") == MISSING for doc in found.values()):
            raise self._gone()
        return {
            ids[id]: Head.stored(doc["_source"]["head"] | {"token": (doc["_seq_no"], doc["_primary_term"])})
            for id, doc in found.items()
            if doc.get("found")
        }

    async def write(self, part: PageEmbeddings, head: Head | None) -> bool:
        """Write the part's chunks, then the head, if given. It replaces the head with its token, or creates one.

        Returns False if there is a newer chunk. Raises: HeadConflict: there is another head; chunks may be written.
        """
        if not self.info.mapped:
            await self._complete_mapping()
        writes = [self._chunk(part, chunk) for chunk in part.chunks]
        if head is not None:
            writes.append(self._head(head))
        written = await self._write(writes)
        if head is not None and written.pop().stale:
            raise HeadConflict(f"the head of {head.change.page_key} in {self.info.name} is not the one that was read")
        return not any(chunk.stale for chunk in written)

    async def remove(self, change: ChangeRef, chunks: Sequence[tuple[FieldName, int]]) -> None:
        """Delete chunks unless a newer revision wrote them."""
        key = change.page_key
        await self._write(
            [Write(self.info.write_alias, chunk_id(key, field, ord), change.revision, None) for field, ord in chunks]
        )

    async def keep(self, part: PageEmbeddings, place: PartPosition) -> None:
        """Store a part outside of searches until the page's other parts arrive."""
        await self._parts.keep(self.info.name, part, place)

    async def kept(self, part: PageEmbeddings) -> Mapping[int, PartPosition]:
        """Places of the stored parts of the same making, by part number."""
        return await self._parts.kept(self.info.name, part)

    async def take(self, part: PageEmbeddings, number: int) -> PageEmbeddings:
        """A stored part. Raises: PartGone."""
        return await self._parts.take(self.info.name, part, number)

    async def drop(self, part: PageEmbeddings, places: Mapping[int, PartPosition]) -> None:
        """Delete the stored parts of this making, except copies with a later place."""
        await self._parts.drop(self.info.name, part, places)

    async def regroup(self, head: Head, change: ChangeRef | None, groups: Sequence[str] | None) -> bool:
        """Set the groups of the head's chunks; None: everybody. Texts and vectors stay.

        Args:
            change: The change that the chunks belong to from now on; None: they keep theirs, and no group is added.

        Returns:
            Whether all chunks existed.
        """
        key = head.change.page_key
        ids = [chunk_id(key, field, ord) for field, count in head.counts.items() for ord in range(count)]
        if change is not None and await self._there(ids) < len(ids):
            return False
        await self.refresh()
        found = 0
        for some in chunked(ids, REGROUPED):
            sources = await self._sources(some)
            found += len(sources)
            await self._write([self._regrouped(id, source, change, groups) for id, source in sources.items()])
        return found == len(ids)

    async def _there(self, ids: Sequence[str]) -> int:
        with explained(f"counting chunks in {self.info.name}"):
            answer = await self._es.mget(index=self.info.name, ids=ids, source=False)
        return sum(bool(doc.get("found")) for doc in answer["docs"])

    async def _sources(self, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Documents by id, with their vectors, from the last refresh."""
        with explained(f"reading chunks of {self.info.name}"):
            answer = await self._es.search(
                index=self.info.name, query={"ids": {"values": ids}}, source={"exclude_vectors": False}, size=len(ids)
            )
        return {hit["_id"]: hit["_source"] for hit in answer["hits"]["hits"]}

    def _regrouped(
        self, id: str, source: dict[str, Any], change: ChangeRef | None, groups: Sequence[str] | None
    ) -> Write:
        allowed = groups
        if change is None and groups is not None and "groups" in source:
            allowed = [group for group in source["groups"] if group in groups]
        document = source | {"stems": self._stems(source["text"], source["lang"])}  # not part of the stored document
        document.pop("groups", None)
        if allowed is not None:
            document["groups"] = allowed or NO_GROUP
        if change is not None:
            document["revision"] = change.revision
        return Write(self.info.write_alias, id, document["revision"], document)

    def _stems(self, text: str, lang: str) -> str:
        return " ".join(indexed(text, lang) if self.info.by_language else stems(text))

    async def strays(self, change: ChangeRef) -> list[tuple[FieldName, int]]:
        """The page's searchable chunks that are not newer than this change, at most 10,000."""
        older = [
            {"term": {"page_key": change.page_key}},
            {"term": {"kind": "chunk"}},
            {"range": {"revision": {"lte": change.revision}}},
        ]
        with explained(f"looking for old chunks of {change.page_key}"):
            answer = await self._es.search(
                index=self.info.name,
                query={"bool": {"filter": older}},
                source_includes=["field", "ord"],
                size=10_000,
            )
        return [(hit["_source"]["field"], hit["_source"]["ord"]) for hit in answer["hits"]["hits"]]

    async def refresh(self) -> None:
        """Make everything written so far searchable."""
        await self._writer.refresh(self.info.concrete)

    async def _write(self, writes: Sequence[Write]) -> list[WriteOutcome]:
        try:
            return await self._writer.write(writes)
        except IndexMissing as err:
            raise self._gone() from err

    async def _complete_mapping(self) -> None:
        """Of an index that an older version made: it takes no field that it does not know."""
        with explained(f"adding fields to the mapping of {self.info.name}"):
            try:
                await self._es.indices.put_mapping(index=self.info.name, properties=added_mapping())
            except NotFoundError as err:
                raise self._gone() from err

    def _gone(self) -> IndexGone:
        return IndexGone(f"index {self.info.name} is gone")

    def _chunk(self, part: PageEmbeddings, chunk: EmbeddedChunk) -> Write:
        change = part.change
        key = change.page_key
        meta = part.meta
        shown = chunk.place or meta
        document: dict[str, Any] = {
            "kind": "chunk",
            "page_key": key,
            "page_id": change.page_id,
            "lang": change.lang,
            "revision": change.revision,
            "title": shown.title if shown else "",
            "url": shown.url if shown else "",
            "field": chunk.field,
            "ord": chunk.ord,
            "text": chunk.text,
            "stems": self._stems(chunk.text, change.lang),
            "embedding": chunk.vector,
            "embed_hash": chunk.embed_hash,
            "model": part.model,
            "chunker": part.chunker,
        }
        if chunk.sparse:
            document["sparse"] = chunk.sparse
        if chunk.ord == 0:
            document["path"] = path_of(meta.url if meta else "")
            document["folded_title"] = fold(document["title"])
        if meta:
            document |= meta.model_dump(mode="json", include=set(STAMP))
        if chunk.units:
            document["units"] = chunk_units.stored(chunk)
        if headings := [*dict.fromkeys(unit.headings[-1] for unit in chunk.units if unit.headings)]:
            document |= {"headings": headings, "folded_headings": [*map(fold, headings)]}
        if meta and meta.groups is not None:
            document["groups"] = meta.groups or NO_GROUP
        if meta and meta.labels:
            document["labels"] = label_tokens(meta.labels)
        document |= self.info.mark
        return Write(self.info.write_alias, chunk_id(key, chunk.field, chunk.ord), change.revision, document)

    def _head(self, head: Head) -> Write:
        change = head.change
        document = {
            "kind": "head",
            "page_key": change.page_key,
            "page_id": change.page_id,
            "lang": change.lang,
            "revision": change.revision,
            "state": head.state,
            "head": head.dumped(),
        } | self.info.mark
        if head.reading is not None:
            document["reader"] = head.reading.reader
        replaces: Token | Literal["nothing"] = head.token or "nothing"
        return Write(self.info.write_alias, head_id(change.page_key), change.revision, document, replaces)


class ElasticPages:
    """The pages of all sites in their indexes, and the receipts of all sites."""

    def __init__(self, es: AsyncElasticsearch, indexes: ElasticIndexes, writer: Writer) -> None:
        self._es = es
        self._indexes = indexes
        self._writer = writer
        self._heads = DocumentLookup(es, "head")
        self._parts = WaitingParts(es, indexes, writer)

    async def live(self, site: str, *, embedder: str, model: str, dims: int, chunker: str) -> PageIndex:
        """The live index, created with this model if the site never had one.

        Raises:
            IndexUnfit, IndexGone.
        """
        info = await self._indexes.ensure(site, embedder=embedder, model=model, dims=dims, chunker=chunker)
        return self.at(info)

    async def there(self, site: str) -> PageIndex | None:
        """The live index; None: there is none."""
        info = await self._indexes.live(site)
        return self.at(info) if info else None

    async def still_live(self, index: PageIndex) -> bool:
        """Whether visitors search `index`, and no promotion is about to replace it."""
        info = await self._indexes.now(index.info.site)
        return info is not None and info.name == index.info.name and not info.held

    def at(self, info: IndexInfo) -> PageIndex:
        """One index of a site."""
        return PageIndex(self._es, self._heads, self._writer, self._parts, info)

    async def heads(self, site: str, page_keys: Iterable[str]) -> dict[str, Head]:
        """Heads in the live index by page key, read in real time; empty without a live index."""
        keys = list(page_keys)
        info = await self._indexes.live(site)
        try:
            return await self.at(info).heads(keys) if info else {}
        except IndexGone:  # deleted meanwhile, perhaps after another one was promoted
            info = await self._indexes.now(site)
            return await self.at(info).heads(keys) if info else {}

    async def vectors(self, site: str, hashes: Sequence[str]) -> dict[str, ChunkVectors]:
        """Vectors by embed hash, from any index of the site, also from those of a rebuild."""
        if not hashes:
            return {}
        names = [info.name for info in await self._indexes.generations(site)]
        if not names:
            return {}
        found: dict[str, ChunkVectors] = {}
        for wanted in chunked(hashes, MAX_LOOKUP):
            with explained(f"looking up known vectors of site {site}"):
                answer = await self._es.search(
                    index=names,
                    ignore_unavailable=True,
                    query={"bool": {"filter": {"terms": {"embed_hash": wanted}}}},
                    collapse={"field": "embed_hash"},
                    source={"includes": ["embed_hash", "embedding", "sparse"], "exclude_vectors": False},
                    size=len(wanted),
                )
            for hit in answer["hits"]["hits"]:
                source = hit["_source"]
                vector = np.asarray(source["embedding"], dtype=np.float32)
                found[source["embed_hash"]] = ChunkVectors(vector, source.get("sparse", {}))
        return found

    async def units(self, site: str, page_key: str, model: str) -> list[KnownUnits]:
        """The units of the page's chunks, in any index of the site with this model."""
        found: list[KnownUnits] = []
        for name in [info.name for info in await self._indexes.generations(site) if info.model == model]:
            chunks = batches(
                self._es,
                f"looking up known units of {page_key}",
                UNITS_LOOKUP,
                absent=None,
                index=name,
                ignore_unavailable=True,
                query={"bool": {"filter": [{"term": {"page_key": page_key}}, {"term": {"field": "content"}}]}},
                source_includes=["title", "units"],
                sort=["ord"],
            )
            async for source in sources(chunks):
                said, vectors = chunk_units.read(source)
                units = [ChunkUnit.model_construct(**unit) for unit in said]  # unvalidated: we wrote them
                found.append(KnownUnits(source["title"], units, vectors))
        return found

    async def put_receipt(self, event: ReceiptEvent, lane: Lane = "save") -> None:
        """Store the newest state of a change. An older or less final event is ignored.

        Only events of the lane `save` count for freshness, which is about editors' saves.
        """
        lag = round((event.at - event.change.accepted_at).total_seconds() * 1000)
        document: dict[str, Any] = {
            "site": event.change.site,
            "state": event.state,
            "at": event.at.isoformat(),
            "lag_ms": max(0, lag) if lane == "save" else None,
            "event": event.dumped(),
        }
        key = head_id(event.change.page_key)
        write = Write(RECEIPTS, key, event.version, document, aliased=False)
        try:
            await self._writer.write([write])
        except IndexMissing:  # deleted meanwhile
            await self._indexes.ensure_system(RECEIPTS)
            await self._writer.write([write])

    async def receipts(self, page_keys: Iterable[str]) -> dict[str, ReceiptEvent]:
        """The newest event per page, read in real time."""
        ids = {head_id(key): key for key in page_keys}
        found = await documents(self._es, "reading receipts", RECEIPTS, ids, ["event"])
        return {ids[id]: ReceiptEvent.stored(source["event"]) for id, source in found.items()}

    async def newest_receipts(self, size: int) -> list[ReceiptEvent]:
        """The newest receipt events of all sites, the newest first."""
        doing, order = "reading the newest receipts", [{"at": "desc"}]
        answer = await answer_of(self._es, doing, index=RECEIPTS, sort=order, size=size, source_includes=["event"])
        return [ReceiptEvent.stored(hit["_source"]["event"]) for hit in answer["hits"]["hits"]]
