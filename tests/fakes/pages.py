"""In-memory siblings of the adapters of pages, for tests without servers; they pass the same contract tests."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pipelines.ingest.embedding_plan import KnownUnits
from pipelines.ingest.ports import HeadConflict, PartGone, PartPosition
from pipelines.operate.record_places import Covered, NotedRange
from pipelines.runtime.record import Lane
from schemas.base import Message
from schemas.head import Head
from schemas.ingest import ChunkVectors, EmbeddedChunk, PageEmbeddings, ReceiptEvent
from schemas.keys import chunk_id, head_id
from schemas.labels import label_tokens
from schemas.page import ChangeRef, FieldName
from schemas.topics import Topic


@dataclass
class SentMessage:
    """One message a stage sent."""

    topic: Topic
    key: str
    message: Message
    partition_key: str | None
    lane: Lane | None  # None: the lane of the handled record


@dataclass
class FakeSender:
    """Keeps sent messages."""

    sent: list[SentMessage] = field(default_factory=list)

    async def send(
        self, topic: Topic, key: str, message: Message, *, partition_key: str | None = None, lane: Lane | None = None
    ) -> None:
        self.sent.append(SentMessage(topic, key, message, partition_key, lane))

    async def send_all(self, topic: Topic, key: str, messages: Sequence[Message]) -> None:
        for message in messages:
            await self.send(topic, key, message)


@dataclass
class _Doc:
    version: int
    chunk: EmbeddedChunk | None = None  # deleted where neither chunk nor head is set; the version still counts
    head: Head | None = None
    page_key: str = ""
    title: str = ""
    model: str = ""
    groups: tuple[str, ...] | None = None
    labels: tuple[str, ...] = ()


class FakeIndex:
    """Sibling of adapters.elastic.pages.PageIndex: versioned documents in a dict."""

    def __init__(self, model: str = "fake-4", chunker: str = "content-1000-20") -> None:
        self.model = model
        self.chunker = chunker
        self.docs: dict[str, _Doc] = {}
        self.aside: dict[tuple[str, int], tuple[PartPosition, PageEmbeddings]] = {}
        self._writes = 0

    async def heads(self, page_keys: Iterable[str]) -> Mapping[str, Head]:
        found = {key: self.docs.get(head_id(key)) for key in page_keys}
        return {key: doc.head for key, doc in found.items() if doc and doc.head}

    async def write(self, part: PageEmbeddings, head: Head | None) -> bool:
        change = part.change
        key, revision = change.page_key, change.revision
        title = part.meta.title if part.meta else ""
        docs = {
            chunk_id(key, c.field, c.ord): _Doc(
                revision,
                chunk=c,
                page_key=key,
                title=c.place.title if c.place else title,
                model=part.model,
                groups=part.meta.groups if part.meta else None,
                labels=label_tokens(part.meta.labels) if part.meta else (),
            )
            for c in part.chunks
        }
        written = [self._put(id, doc) for id, doc in docs.items()]
        if head is not None:
            self._put_head(head)
        return all(written)

    async def remove(self, change: ChangeRef, chunks: Sequence[tuple[FieldName, int]]) -> None:
        for name, ord in chunks:
            self._put(chunk_id(change.page_key, name, ord), _Doc(change.revision))

    async def keep(self, part: PageEmbeddings, place: PartPosition) -> None:
        known = self.aside.get((part.making, part.part))
        if known is None or known[0].offset <= place.offset:
            self.aside[part.making, part.part] = place, part

    async def kept(self, part: PageEmbeddings) -> Mapping[int, PartPosition]:
        return {number: place for (making, number), (place, _) in self.aside.items() if making == part.making}

    async def take(self, part: PageEmbeddings, number: int) -> PageEmbeddings:
        if (part.making, number) not in self.aside:
            raise PartGone(f"{part.making}#{number}")
        return self.aside[part.making, number][1]

    async def drop(self, part: PageEmbeddings, places: Mapping[int, PartPosition]) -> None:
        for number, place in places.items():
            known = self.aside.get((part.making, number))
            if known is not None and known[0].offset <= place.offset:
                del self.aside[part.making, number]

    async def regroup(self, head: Head, change: ChangeRef | None, groups: Sequence[str] | None) -> bool:
        key = head.change.page_key
        ids = [chunk_id(key, field, ord) for field, count in head.counts.items() for ord in range(count)]
        docs = {id: doc for id in ids if (doc := self.docs.get(id)) and doc.chunk}
        if change is not None and len(docs) < len(ids):
            return False
        for id, doc in docs.items():
            allowed = None if groups is None else tuple(groups)
            if change is None and doc.groups is not None:
                allowed = tuple(group for group in doc.groups if groups is None or group in groups)
            self._put(id, replace(doc, groups=allowed, version=change.revision if change else doc.version))
        return len(docs) == len(ids)

    async def strays(self, change: ChangeRef) -> list[tuple[FieldName, int]]:
        return [
            (doc.chunk.field, doc.chunk.ord)
            for doc in self.docs.values()
            if doc.chunk and doc.page_key == change.page_key and doc.version <= change.revision
        ]

    async def refresh(self) -> None:
        pass

    def texts(self, page_key: str) -> dict[tuple[FieldName, int], tuple[int, str]]:
        """The page's searchable chunks: revision and text by field and number."""
        return {
            (doc.chunk.field, doc.chunk.ord): (doc.version, doc.chunk.text)
            for doc in self.docs.values()
            if doc.chunk and doc.page_key == page_key
        }

    def groups(self, page_key: str) -> set[tuple[str, ...] | None]:
        """Who may find the page's chunks; None: everybody."""
        return {doc.groups for doc in self.docs.values() if doc.chunk and doc.page_key == page_key}

    def labels(self, page_key: str) -> set[tuple[str, ...]]:
        """Those of the page's chunks."""
        return {doc.labels for doc in self.docs.values() if doc.chunk and doc.page_key == page_key}

    def _put(self, id: str, doc: _Doc) -> bool:
        known = self.docs.get(id)
        if known is not None and known.version > doc.version:
            return False
        self.docs[id] = doc
        return True

    def _put_head(self, head: Head) -> None:
        """Replace the head that the writer has read. Raises: HeadConflict: another head is there."""
        id = head_id(head.change.page_key)
        known = self.docs.get(id)
        if (known.head.token if known and known.head else None) != head.token:
            raise HeadConflict(id)
        self._writes += 1
        written = head.model_copy(update={"token": (self._writes, 1)})
        self.docs[id] = _Doc(head.change.revision, head=written, page_key=head.change.page_key)


class FakePages:
    """Sibling of adapters.elastic.pages.ElasticPages: one index that is live for every site, and receipts."""

    def __init__(self) -> None:
        self.index = FakeIndex()
        self._receipts: dict[str, ReceiptEvent] = {}

    async def live(self, site: str, *, embedder: str, model: str, dims: int, chunker: str) -> FakeIndex:
        return self.index

    async def there(self, site: str) -> FakeIndex | None:
        return self.index

    async def still_live(self, index: FakeIndex) -> bool:
        return index is self.index

    async def heads(self, site: str, page_keys: Iterable[str]) -> Mapping[str, Head]:
        return await self.index.heads(page_keys)

    async def vectors(self, site: str, hashes: Sequence[str]) -> dict[str, ChunkVectors]:
        wanted = set(hashes)
        chunks = [doc.chunk for doc in self.index.docs.values() if doc.chunk]
        return {each.embed_hash: ChunkVectors(each.vector, each.sparse) for each in chunks if each.embed_hash in wanted}

    async def units(self, site: str, page_key: str, model: str) -> list[KnownUnits]:
        return [
            KnownUnits(doc.title, doc.chunk.units, doc.chunk.unit_vectors)
            for doc in self.index.docs.values()
            if doc.chunk and (doc.page_key, doc.model) == (page_key, model)
        ]

    async def put_receipt(self, event: ReceiptEvent, lane: Lane = "save") -> None:
        key = event.change.page_key
        known = self._receipts.get(key)
        if known is None or event.version >= known.version:
            self._receipts[key] = event

    async def receipts(self, page_keys: Iterable[str]) -> Mapping[str, ReceiptEvent]:
        return {key: self._receipts[key] for key in page_keys if key in self._receipts}


class FakePlaces:
    """Sibling of adapters.elastic.bundle.ElasticPlaces."""

    def __init__(self) -> None:
        self.notes: dict[str, Covered] = {}
        self.stretches: dict[tuple[str, str, int, int], NotedRange] = {}  # topic, site, partition, start
        self._writes = 0

    async def covered(self, topic: str) -> Covered:
        return self.notes.get(topic, Covered({}))

    async def of_site(self, topic: str, site: str, partition: int) -> AsyncGenerator[NotedRange, None]:
        for key in sorted(key for key in self.stretches if key[:3] == (topic, site, partition)):
            yield self.stretches[key]

    async def add(
        self, topic: str, stretches: Sequence[NotedRange], covered: Covered, ends: Mapping[int, int]
    ) -> Covered | None:
        for stretch in stretches:
            await self.put(topic, stretch)
        if self.notes.get(topic, Covered({})).token != covered.token:
            return None
        return self._cover(topic, {**covered.ends, **ends})

    async def put(self, topic: str, stretch: NotedRange) -> None:
        key = topic, stretch.site, stretch.partition, stretch.start
        if key in self.stretches and self.stretches[key].end > stretch.end:
            return
        self.stretches[key] = stretch
        if not stretch.runs:
            del self.stretches[key]

    async def forget(self, topic: str) -> None:
        if topic in self.notes:
            self._cover(topic, {})

    def _cover(self, topic: str, ends: Mapping[int, int]) -> Covered:
        self._writes += 1
        self.notes[topic] = Covered(dict(ends), (self._writes, 1))
        return self.notes[topic]
