"""Models of the broker and of Elasticsearch for tests/page_history.py: one page, one partition, no clock.

Whatever asks a server gives up its turn before it is answered, so a worker can be stopped, killed or overtaken between
any two effects, also between two documents of one bulk.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from pipelines.ingest.handlers import chunked
from pipelines.ingest.ports import PartPosition
from pipelines.runtime.record import Lane, Record, in_lane
from schemas.head import Head
from schemas.ingest import Chunker, PageChunks, PageEmbeddings
from schemas.keys import chunk_id
from schemas.page import ChangeRef, FieldName, Op, PageChange, PageDocument
from schemas.topics import Topic
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.pages import FakeIndex
from tests.making import NOON

KEY = "town:en:fees"
CORE = 4  # characters

Shown = dict[tuple[FieldName, int], tuple[int, str]]


class turn:  # noqa: N801 - read as a verb: `await turn()`
    """Let others go first."""

    def __await__(self) -> Generator[None, None, None]:
        yield


def now() -> datetime:
    return NOON


def saved(revision: int, op: Op, cores: int, groups: tuple[str, ...] | None = None) -> PageChange:
    """A change whose page has so many cores, no two with the same text, for these groups."""
    text = "".join(f"{revision}.{chr(97 + n)}_" for n in range(cores))
    return PageChange(
        op=op,
        site="town",
        lang="en",
        page_id="fees",
        revision=revision,
        accepted_at=NOON,
        source="push",
        page=None if op == "delete" else PageDocument(id="fees", lang="en", description=text, groups=groups),
    )


@lru_cache(maxsize=10_000)
def cut(value: bytes, chunker: Chunker, offset: int) -> PageChunks:
    return chunked(PageChange.decode(value), chunker, 0, offset)


@dataclass(frozen=True)
class Make:
    """What an index is made for."""

    model: FakeEmbedder
    chunker: Chunker


def makes() -> list[Make]:
    """Two models, two chunkers."""
    small = Chunker(mode="fixed", size=CORE, overlap=0)
    large = Chunker(mode="fixed", size=2 * CORE, overlap=0)
    return [Make(FakeEmbedder(4), small), Make(FakeEmbedder(6, "2"), small), Make(FakeEmbedder(4), large)]


class Log:
    """A compacted topic with one partition. Implements `ChangeLog`."""

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self.records: dict[int, Record] = {}
        self._lanes: dict[int, Lane] = {}
        self.end = 1  # at 0 stands another page: a head that knows no position says 0

    def append(self, key: str, value: bytes, lane: Lane) -> None:
        headers = in_lane((), lane)
        self._lanes[self.end] = lane
        self.records[self.end] = Record(self.topic.name, 0, self.end, key.encode(), value, headers)
        self.end += 1

    def next(self, offset: int, lane: Lane) -> Record | None:
        """The first record of the lane that does not stand before `offset`."""
        return next((r for at, r in self.records.items() if at >= offset and self._lanes[at] == lane), None)

    def tops(self) -> dict[str, Record]:
        """The last record of each key."""
        return {(record.key or b"").decode(): record for record in self.records.values()}

    def compact(self, spared: Callable[[Record], bool]) -> None:
        kept = {record.offset for record in self.tops().values()}
        self.records = {at: r for at, r in self.records.items() if at in kept or spared(r)}

    async def read(self, partition: int, start: int, end: int | None = None) -> list[Record]:
        await turn()
        return [r for at, r in self.records.items() if start <= at and (end is None or at < end)]


class Generation(FakeIndex):
    """An index whose documents are written one by one, and found after a refresh."""

    def __init__(self, make: Make) -> None:
        super().__init__(make.model.fingerprint, make.chunker.fingerprint)
        self.make = make
        self.caught_up = 0  # cms.changes before this offset need not be read to make it live again
        self._found = FakeIndex()

    async def heads(self, page_keys: Iterable[str]) -> Mapping[str, Head]:
        await turn()
        return await super().heads(page_keys)

    async def write(self, part: PageEmbeddings, head: Head | None) -> bool:
        written = True
        for chunk in part.chunks:
            await turn()
            written &= await super().write(part.model_copy(update={"chunks": (chunk,)}), None)
        if head is not None:
            await turn()
            written &= await super().write(part.model_copy(update={"chunks": ()}), head)
        return written

    async def remove(self, change: ChangeRef, chunks: Sequence[tuple[FieldName, int]]) -> None:
        for chunk in chunks:
            await turn()
            await super().remove(change, [chunk])

    async def keep(self, part: PageEmbeddings, place: PartPosition) -> None:
        await turn()
        await super().keep(part, place)

    async def kept(self, part: PageEmbeddings) -> Mapping[int, PartPosition]:
        await turn()
        return await super().kept(part)

    async def take(self, part: PageEmbeddings, number: int) -> PageEmbeddings:
        await turn()
        return await super().take(part, number)

    async def drop(self, part: PageEmbeddings, places: Mapping[int, PartPosition]) -> None:
        await turn()
        await super().drop(part, places)

    async def regroup(self, head: Head, change: ChangeRef | None, groups: Sequence[str] | None) -> bool:
        whole = True
        for field, count in head.counts.items():
            for ord in range(count):
                await turn()
                one = self.docs.get(chunk_id(KEY, field, ord))
                whole &= one is not None and one.chunk is not None
        await turn()
        return (change is None or whole) and await super().regroup(head, change, groups)

    async def strays(self, change: ChangeRef) -> list[tuple[FieldName, int]]:
        await turn()
        return await self._found.strays(change)

    async def refresh(self) -> None:
        await turn()
        self.refreshed()

    def refreshed(self) -> None:
        self._found.docs = dict(self.docs)

    def forget(self) -> None:
        """Delete markers last a minute."""
        self.docs = {id: doc for id, doc in self.docs.items() if doc.chunk or doc.head}

    @property
    def shown(self) -> Shown:
        """What visitors find."""
        return self._found.texts(KEY)

    @property
    def seen_by(self) -> set[tuple[str, ...] | None]:
        """Whom visitors have to be to find the page's chunks; None: anybody."""
        return self._found.groups(KEY)

    @property
    def lengths(self) -> set[int]:
        """Of the vectors that visitors' questions are compared with."""
        return {doc.chunk.vector.size for doc in self._found.docs.values() if doc.chunk}

    @property
    def head(self) -> Head | None:
        """As of the last refresh."""
        return next((doc.head for doc in self._found.docs.values() if doc.head), None)
