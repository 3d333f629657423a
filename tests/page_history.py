"""The ingest pipeline and one page, step by step: whoever calls decides who does what next.

    cms.changes ─▶ chunk ─▶ ingest.chunks ─▶ embed ─▶ ingest.embeddings ─▶ index ─▶ generations of an index
         └──────────────── promotion: fill, hold, follow, swap, follow ──────────────────▶    ┘

The handlers are the real ones; broker, Elasticsearch and rebuild are small models of themselves. Whatever asks a
server gives up its turn before it is answered (`turn`), so a worker can be stopped, killed or overtaken between any
two effects, also between two documents of one bulk. No event loop and no clock: the same turns give the same history.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from adapters.embedders.fake import FakeEmbedder
from adapters.fakes import FakeIndex
from pipelines.ingest.accept import newer
from pipelines.ingest.agents import chunked, embed_handler, index_handler
from pipelines.ingest.index import Origin, apply_part
from pipelines.ingest.reuse import Embedding, PageModel
from pipelines.runtime.errors import Retryable
from pipelines.runtime.record import LANES, Lane, Record, in_lane
from pipelines.runtime.stage import Handler, Sender
from schemas.base import Message
from schemas.head import Head
from schemas.ingest import Chunker, PageChunks, PageEmbeddings, ReceiptEvent, Vector32
from schemas.keys import chunk_id, head_id
from schemas.page import ChangeRef, FieldName, Op, PageChange, PageDocument
from schemas.topics import CHANGES, CHUNKS, EMBEDDINGS, RECEIPTS, Topic
from tests.making import NOON

KEY = "town:en:fees"
PER_PART = 2  # chunks
CORE = 4  # characters
ENOUGH = 20_000  # turns in which everything must come to rest

Shown = dict[tuple[FieldName, int], tuple[int, str]]


class turn:  # noqa: N801 - read as a verb: `await turn()`
    """Let others go first."""

    def __await__(self) -> Generator[None, None, None]:
        yield


def now() -> datetime:
    return NOON


def saved(revision: int, op: Op, cores: int) -> PageChange:
    """A change whose page has so many cores, no two with the same text."""
    text = "".join(f"{revision}.{chr(97 + n)}_" for n in range(cores))
    return PageChange(
        op=op,
        site="town",
        lang="en",
        page_id="fees",
        revision=revision,
        accepted_at=NOON,
        source="push",
        page=None if op == "delete" else PageDocument(id="fees", lang="en", description=text),
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
        self.end = 0

    def append(self, key: str, value: bytes, lane: Lane) -> None:
        headers = in_lane((), lane)
        self.records[self.end] = Record(self.topic.name, 0, self.end, key.encode(), value, headers)
        self.end += 1

    def next(self, offset: int, lane: Lane) -> Record | None:
        """The first record of the lane that does not stand before `offset`."""
        return next((r for at, r in self.records.items() if at >= offset and r.lane == lane), None)

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
            written &= not self._deleted(chunk_id(KEY, chunk.field, chunk.ord), part.change) and await super().write(
                part.model_copy(update={"chunks": (chunk,)}), None
            )
        if head is not None:
            await turn()
            written &= not self._deleted(head_id(KEY), part.change) and await super().write(
                part.model_copy(update={"chunks": ()}), head
            )
        return written

    def _deleted(self, id: str, change: ChangeRef) -> bool:
        doc = self.docs.get(id)
        if doc is None or doc.chunk or change.op == "delete" or doc.version != change.revision:
            return False
        return doc.head is None or doc.head.state == "deleted"

    async def remove(self, change: ChangeRef, chunks: Sequence[tuple[FieldName, int]]) -> None:
        for chunk in chunks:
            await turn()
            await super().remove(change, [chunk])

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
    def head(self) -> Head | None:
        """As of the last refresh."""
        return next((doc.head for doc in self._found.docs.values() if doc.head), None)

    def wanted(self, change: PageChange) -> Shown:
        """What visitors find when the index shows this change."""
        page = cut(change.encode(), self.make.chunker, 0)
        return {(chunk.field, chunk.ord): (change.revision, chunk.text) for chunk in page.chunks}


class SmallParts(Embedding):
    """As if a part had room for two chunks."""

    async def embed_with(self, model: PageModel, page: PageChunks, chunks_offset: int = 0) -> list[PageEmbeddings]:
        [whole] = await super().embed_with(model, page, chunks_offset)
        pieces = [whole.chunks[at : at + PER_PART] for at in range(0, len(whole.chunks), PER_PART)] or [()]
        return [
            whole.model_copy(update={"part": part, "parts": len(pieces), "chunks": own})
            for part, own in enumerate(pieces)
        ]


class View:
    """What one process knows of the indexes, which may be out of date. Implements `Sites`, `Models`, `KnownVectors`."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._known: Generation | None = None

    async def now(self) -> Generation:
        await turn()
        self._known = self._world.live
        return self._known

    async def live(self, site: str, **_: Any) -> Generation:
        return self._known or await self.now()

    async def still_live(self, index: Generation) -> bool:
        return await self.now() is index and self._world.held is not index

    async def for_new(self, site: str) -> PageModel:
        return (await self.now()).make.model

    async def heads(self, site: str, page_keys: Iterable[str]) -> Mapping[str, Head]:
        return await (await self.live(site)).heads(page_keys)

    async def vectors(self, site: str, hashes: Sequence[str]) -> dict[str, Vector32]:
        await turn()
        return {}


class Sending:
    """What a worker sends inherits its lane. Implements `Sender`."""

    def __init__(self, world: World, lane: Lane) -> None:
        self._world = world
        self._lane = lane

    async def send(
        self, topic: Topic, key: str, message: Message, *, partition_key: str | None = None, lane: Lane | None = None
    ) -> None:
        await turn()
        self._world.logs[topic].append(key, message.encode(), lane or self._lane)
        if isinstance(message, ReceiptEvent):
            self._world.told(message)


class Worker:
    """Works on the records of one stage and lane, one after the other."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self._handle = group.handler(View(group.world))
        self._at = group.committed
        self._work: Coroutine[Any, None, None] | None = None

    @property
    def busy(self) -> bool:
        return self._work is not None

    @property
    def idle(self) -> bool:
        return not self.busy and self._group.log.next(self._at, self._group.lane) is None

    def step(self) -> None:
        """On to the next question to a server."""
        if self._work is None:
            record = self._group.log.next(self._at, self._group.lane)
            if record is None:
                return
            self._work = self._one(record)
        try:
            self._work.send(None)
        except StopIteration:
            self._work = None

    def kill(self) -> None:
        if self._work is not None:
            self._work.close()

    async def _one(self, record: Record) -> None:
        while True:
            try:
                await self._handle(record, Sending(self._group.world, self._group.lane))
                break
            except Retryable:
                await turn()
        await turn()  # it may die before it says so
        self._at = record.offset + 1
        self._group.acknowledge(self, self._at)


class Group:
    """A stage's consumer group for one lane: one worker at a time owns the page."""

    def __init__(self, world: World, topic: Topic, lane: Lane, handler: Callable[[View], Handler]) -> None:
        self.world = world
        self.log = world.logs[topic]
        self.lane = lane
        self.handler = handler
        self.committed = 0
        self.owner = Worker(self)

    def acknowledge(self, worker: Worker, offset: int) -> None:
        if worker is self.owner:  # the broker takes nobody else's word
            self.committed = offset

    def hand_over(self) -> Worker:
        """Another worker goes on after what was acknowledged; the one before, returned, does not know yet."""
        before, self.owner = self.owner, Worker(self)
        return before

    def rewind(self) -> None:
        self.hand_over().kill()
        self.committed = 0
        self.owner = Worker(self)


class Promotion:
    """Fills a generation and makes it live, as pipelines.ingest.rebuild. Once killed it goes on where it was."""

    def __init__(self, world: World, target: Generation) -> None:
        self._world = world
        self._target = target
        self._at = target.caught_up
        self._embedding = SmallParts(View(world), View(world))
        self._work = self._run()
        self.idle = False

    def step(self) -> None:
        try:
            self._work.send(None)
        except StopIteration:
            self.idle = True

    def kill(self) -> None:
        self._work.close()
        self._world.held = None  # a hold ends by itself
        self._work = self._run()

    async def _run(self) -> None:
        world = self._world
        await turn()
        if (old := world.live) is not self._target:
            await self._follow()
            end = world.logs[CHANGES].end
            old_end = end if world.all_acknowledged else 0
            await turn()
            world.held = old
            await self._follow()
            await self._target.refresh()
            await turn()
            world.live, old.caught_up = self._target, old_end
            await turn()
            world.held = None
        await self._follow()

    async def _follow(self) -> None:
        """To where the log ends now."""
        await turn()
        log, make = self._world.logs[CHANGES], self._target.make
        end = log.end
        while self._at < end:
            record = log.records.get(self._at)
            if record is not None:
                await turn()
                page = cut(record.value or b"", make.chunker, record.offset)
                for part in await self._embedding.embed_with(make.model, page):
                    await apply_part(part, self._target, now, Origin())
            self._at += 1


class World:
    """All of it. A test saves, says who takes the next steps, and lets everybody finish."""

    def __init__(self, cores: Mapping[int, int]) -> None:
        """`cores`: how long the page is at each revision."""
        self._cores = cores
        self._makes = makes()
        self.logs = {topic: Log(topic) for topic in (CHANGES, CHUNKS, EMBEDDINGS, RECEIPTS)}
        self.generations = [Generation(self._makes[0])]
        self.live = self.generations[0]
        self.held: Generation | None = None
        self.winner: PageChange | None = None
        self.promised: ChangeRef | None = None  # the newest change with a receipt
        stages = ((CHANGES, self._chunk), (CHUNKS, self._embed), (EMBEDDINGS, self._index))
        self.groups = [Group(self, topic, lane, handler) for topic, handler in stages for lane in LANES]
        self.zombies: list[Worker] = []
        self.promotion: Promotion | None = None

    def _chunk(self, view: View) -> Handler:
        async def handle(record: Record, sender: Sender) -> None:  # agents.chunk_handler, without its thread
            chunker = (await view.now()).make.chunker
            await sender.send(CHUNKS, KEY, cut(record.value or b"", chunker, record.offset))

        return handle

    def _embed(self, view: View) -> Handler:
        return embed_handler(SmallParts(view, view))

    def _index(self, view: View) -> Handler:
        return index_handler(view, self.logs[CHANGES])

    # What can happen.

    def save(self, revision: int, op: Op, lane: Lane) -> None:
        change = saved(revision, op, self._cores[revision])
        self.logs[CHANGES].append(KEY, change.encode(), lane)
        if self.winner is None or newer(change, self.winner):
            self.winner = change

    def step(self, actor: int, steps: int) -> None:
        """One of those who have something to do goes on."""
        for _ in range(steps):
            actors = self.actors
            if not actors:
                return
            actors[actor % len(actors)].step()
            self.check_promises()

    def kill(self, group: int) -> None:
        self.groups[group].hand_over().kill()

    def pause(self, group: int) -> None:
        """A worker is taken for dead; it goes on later, beside its successor."""
        worker = self.groups[group].hand_over()
        if worker.busy:
            self.zombies.append(worker)

    def replay(self, group: int) -> None:
        self.groups[group].rewind()

    def promote(self, make: int) -> None:
        """A rebuild begins, unless one is under way."""
        if self.promotion is None or self.promotion.idle:
            self.generations.append(Generation(self._makes[make]))
            self.promotion = Promotion(self, self.generations[-1])

    def roll_back(self) -> None:
        if len(self.generations) > 1 and (self.promotion is None or self.promotion.idle):
            self.promotion = Promotion(self, next(g for g in reversed(self.generations) if g is not self.live))

    def kill_promotion(self) -> None:
        if self.promotion is not None and not self.promotion.idle:
            self.promotion.kill()

    def compact(self) -> None:
        """The winner's change stays for as long as it takes (`min.compaction.lag.ms`)."""
        for log in self.logs.values():
            log.compact(self._spared)

    def _spared(self, record: Record) -> bool:
        if record.topic != CHANGES.name or self.winner is None:
            return False
        change = PageChange.decode(record.value)
        return (change.revision, change.op) == (self.winner.revision, self.winner.op)

    def forget(self) -> None:
        for generation in self.generations:
            generation.forget()

    def settle(self) -> None:
        """Everybody finishes, those who were taken for dead last."""
        for _ in range(ENOUGH):
            if actors := [actor for actor in self.actors if actor not in self.zombies] or self.zombies[:1]:
                for actor in actors:
                    actor.step()
                    self.check_promises()
            else:
                break
            self.zombies = [zombie for zombie in self.zombies if zombie.busy]
        else:
            raise AssertionError("it does not come to rest")
        self.live.refreshed()

    # What must be so.

    @property
    def actors(self) -> list[Worker | Promotion]:
        everybody = [*(group.owner for group in self.groups), *self.zombies, self.promotion]
        return [actor for actor in everybody if actor is not None and not actor.idle]

    @property
    def all_acknowledged(self) -> bool:
        return all(group.log.next(group.committed, group.lane) is None for group in self.groups)

    def told(self, event: ReceiptEvent) -> None:
        """An editor reads it now."""
        if event.state in ("searchable", "deleted") and (self.promised is None or newer(event.change, self.promised)):
            self.promised = event.change

    def check_promises(self) -> None:
        """What an editor was told is so in the index that visitors search, from then on."""
        if self.promised is not None:
            head = self.live.head
            assert head is not None, "the index knows nothing of a page that has a receipt"
            assert not newer(self.promised, head.change), f"told {self.promised}, shown {head.change}"

    def check_settled(self) -> None:
        """The highest revision stands: in the index, in every topic, on the receipt."""
        assert self.winner is not None
        head = self.live.head
        assert head is not None
        assert (head.change.revision, head.change.op) == (self.winner.revision, self.winner.op)
        assert self.live.shown == self.live.wanted(self.winner)
        assert self.promised is not None
        assert (self.promised.revision, self.promised.op) == (self.winner.revision, self.winner.op)
        changes, chunks, _ = (self.logs[topic].tops() for topic in (CHANGES, CHUNKS, EMBEDDINGS))
        assert PageChange.decode(changes[KEY].value) == self.winner
        assert PageChunks.decode(chunks[KEY].value).change.revision == self.winner.revision
        assert PageChunks.decode(chunks[KEY].value).change.op == self.winner.op
