"""The ingest pipeline and one page, step by step: the test decides which process takes the next step.

    cms.changes ─▶ chunk ─▶ ingest.chunks ─▶ embed ─▶ ingest.embeddings ─▶ index ─▶ generations of an index
         └──────────────── promotion: fill, hold, follow, swap, follow ──────────────────▶    ┘

The handlers are the real ones; broker, Elasticsearch and rebuild are models of themselves (tests/page_servers.py). No
event loop and no clock: the same turns give the same history.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from random import Random
from typing import Any, Literal

from pipelines.ingest.accept import newer
from pipelines.ingest.early_changes import early_part
from pipelines.ingest.embed import Embedding
from pipelines.ingest.embedding_plan import PlannedChunk
from pipelines.ingest.handlers import embed_handler, index_handler
from pipelines.ingest.index import apply_part
from pipelines.runtime.embedder import Embedder
from pipelines.runtime.errors import Retryable
from pipelines.runtime.record import LANES, Lane, Record
from pipelines.runtime.stage import Handler, Sender
from schemas.base import Message
from schemas.head import Head, LogPositions
from schemas.ingest import ChunkVectors, PageChunks, PageEmbeddings, ReceiptEvent
from schemas.keys import ahead_key
from schemas.page import ChangeRef, Op, PageChange
from schemas.topics import CHANGES, CHUNKS, EMBEDDINGS, RECEIPTS, Topic
from tests.page_servers import KEY, Generation, Log, Shown, cut, makes, now, saved, turn

PER_PART = 2  # chunks
PACES = (1, 1, 3, 12)  # turns that one takes before others do
ENOUGH = 20_000  # turns in which everything must come to rest

Groups = tuple[str, ...] | None
Then = Literal["goes on", "is paused", "is killed"]


class SmallParts(Embedding):
    """As if a part had room for two chunks. Looks up one thing after the other: a step is one turn of one coroutine."""

    async def _known_vectors(
        self, model: Embedder, page: PageChunks, planned: Sequence[PlannedChunk], hashes: Mapping[str, str]
    ) -> tuple[dict[str, ChunkVectors], dict[str, bytes]]:
        vectors = await self._look_up(page.change.site, planned)
        return vectors, await self._look_up_units(model, page, hashes)

    async def embed_with(self, model: Embedder, page: PageChunks, chunks_offset: int = 0) -> list[PageEmbeddings]:
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

    async def there(self, site: str) -> Generation:
        return await self.live(site)

    async def still_live(self, index: Generation) -> bool:
        return await self.now() is index and self._world.held is not index

    async def for_new(self, site: str) -> Embedder:
        return (await self.now()).make.model

    async def heads(self, site: str, page_keys: Iterable[str]) -> Mapping[str, Head]:
        return await (await self.live(site)).heads(page_keys)

    async def vectors(self, site: str, hashes: Sequence[str]) -> dict[str, ChunkVectors]:
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
            self._group.begun = max(self._group.begun, record.offset + 1)
        try:
            self._work.send(None)
        except StopIteration:
            self._work = None

    def kill(self) -> None:
        if self._work is not None:
            self._work.close()

    def bury(self) -> Record | None:
        """The next record cannot be read: it becomes a dead letter, unless somebody has read it and begun."""
        record = self._group.log.next(self._at, self._group.lane)
        if record is None or record.offset < self._group.begun:
            return None
        self._at = record.offset + 1
        self._group.acknowledge(self, self._at)
        return record

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
        self.begun = 0  # somebody has worked on records before this offset
        self.owner = Worker(self)

    def acknowledge(self, worker: Worker, offset: int) -> None:
        if worker is self.owner:  # the broker takes nobody else's word
            self.committed = offset

    def replay(self) -> None:
        """The whole topic once more."""
        self.owner.kill()
        self.committed = 0
        self.owner = Worker(self)


class Promotion:
    """Fills a generation and makes it live, as pipelines.operate.rebuild does. Once killed it goes on where it was."""

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
        log, chunker = self._world.logs[CHANGES], self._target.make.chunker
        end = log.end
        while self._at < end:
            record = log.records.get(self._at)
            if record is not None:
                await turn()
                await self._put(cut(record.value or b"", chunker, record.offset))
            self._at += 1

    async def _put(self, page: PageChunks) -> None:
        """Until it works, as a rebuild does: workers write to the same index once it is live."""
        while True:
            try:
                for part in await self._embedding.embed_with(self._target.make.model, page):
                    await apply_part(part, self._target, now, LogPositions(changes=self._at, changes_in=0))
                return
            except Retryable:
                await turn()


class World:
    """All of it. A test saves, says who takes the next steps, and lets everybody finish."""

    def __init__(self, cores: Mapping[int, int], groups: Mapping[int, Groups] | None = None) -> None:
        """`cores`: how long the page is at each revision; `groups`: who may see it then (default: everybody)."""
        self._cores = cores
        self._groups = groups or {}
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
        self.buried: list[tuple[Record, Lane]] = []

    def _chunk(self, view: View) -> Handler:
        async def handle(record: Record, sender: Sender) -> None:  # handlers.chunk_handler, without its thread
            chunker = (await view.now()).make.chunker
            page = cut(record.value or b"", chunker, record.offset)
            await sender.send(CHUNKS, KEY, page)
            if ahead := early_part(page):
                await sender.send(EMBEDDINGS, ahead_key(KEY), ahead, partition_key=KEY)

        return handle

    def _embed(self, view: View) -> Handler:
        return embed_handler(SmallParts(view, view))

    def _index(self, view: View) -> Handler:
        return index_handler(view, self.logs[CHANGES])

    # What can happen.

    def save(self, revision: int, op: Op, lane: Lane) -> None:
        change = self._saved(revision, op)
        self.logs[CHANGES].append(KEY, change.encode(), lane)
        if self.winner is None or newer(change, self.winner):
            self.winner = change

    def _saved(self, revision: int, op: Op) -> PageChange:
        return saved(revision, op, self._cores[revision], self._groups.get(revision))

    def step(self, actor: int, steps: int, then: Then) -> None:
        """One of those who have something to do goes on, and may be killed or taken for dead in the midst of it."""
        actors = self.actors
        if not actors:
            return
        one = actors[actor % len(actors)]
        for _ in range(steps):
            if one.idle:
                break
            one.step()
            self.check_promises()
            self.check_groups()
        if then == "is killed" and not one.idle:
            self._leave(one)
            one.kill()
        elif then == "is paused" and isinstance(one, Worker) and one.busy and one not in self.zombies:
            self._leave(one)
            self.zombies.append(one)

    def _leave(self, worker: Worker | Promotion) -> None:
        """Another one takes over, after what was acknowledged."""
        for group in self.groups:
            if group.owner is worker:
                group.owner = Worker(group)
        self.zombies = [zombie for zombie in self.zombies if zombie is not worker]

    def replay(self, group: int) -> None:
        self.groups[group].replay()

    def promote(self, make: int) -> None:
        """A rebuild begins, unless one is under way."""
        if self.promotion is None or self.promotion.idle:
            self.generations.append(Generation(self._makes[make]))
            self.promotion = Promotion(self, self.generations[-1])

    def bury(self, lane: Lane) -> None:
        """What the index stage would read next becomes a dead letter."""
        for group in self.groups:
            if (group.log.topic, group.lane) == (EMBEDDINGS, lane) and (record := group.owner.bury()):
                self.buried.append((record, lane))

    def redrive(self) -> None:
        """All dead letters, the oldest first."""
        for record, lane in self.buried:
            self.logs[EMBEDDINGS].append((record.key or b"").decode(), record.value or b"", lane)
        self.buried.clear()

    def roll_back(self) -> None:
        """The index before this one becomes live again."""
        if len(self.generations) > 1 and (self.promotion is None or self.promotion.idle):
            self.promotion = Promotion(self, next(g for g in reversed(self.generations) if g is not self.live))

    def compact(self) -> None:
        """Of what was worked on, only the last record of each key stays; of the log, not within its lag of a week."""
        if self.all_acknowledged and not self.zombies:
            self.logs[CHANGES].compact(lambda record: False)
        self.logs[CHUNKS].compact(self._pending)
        self.logs[EMBEDDINGS].compact(self._pending)

    def stand_still(self) -> None:
        """A week in which nobody works: of the log, too, only the last record of each key stays."""
        if self.winner and self.promised and not newer(self.winner, self.promised):  # the index knows the winner
            self.logs[CHANGES].compact(lambda record: False)

    def _pending(self, record: Record) -> bool:
        readers = [group for group in self.groups if (group.log.topic.name, group.lane) == (record.topic, record.lane)]
        return any(record.offset >= group.committed for group in readers)

    def forget(self) -> None:
        for generation in self.generations:
            generation.forget()

    def settle(self, seed: int) -> None:
        """Everybody finishes: in step (0) or as chance has it, and those who were taken for dead last."""
        chance = Random(seed)
        for _ in range(ENOUGH):
            alive = [actor for actor in self.actors if actor not in self.zombies]
            if not (alive or self.zombies):
                break
            for actor in [chance.choice(alive)] if alive and seed else alive or self.zombies[:1]:
                for _ in range(chance.choice(PACES) if seed else 1):
                    if not actor.idle:
                        actor.step()
                        self.check_promises()
                        self.check_groups()
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

    @property
    def _highest(self) -> int:
        return self.winner.revision if self.winner else -1

    @property
    def _index_is_quiet(self) -> bool:
        """Nobody is in the midst of an older change, which may show for a moment before it is taken back."""
        at_work = (group.owner for group in self.groups if group.log.topic == EMBEDDINGS)
        return not self.zombies and all(worker.idle for worker in at_work)

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
            if self.promised.op == "delete" and self.promised.revision == self._highest and self._index_is_quiet:
                assert not self.live.shown, "a page that was deleted can be found"

    def check_groups(self) -> None:
        """Nobody finds the page whom the newest change does not allow that the index stage was told of."""
        if not self._groups or not self._index_is_quiet or (head := self.live.head) is None:
            return
        told = [
            PageEmbeddings.decode(record.value)
            for group in self.groups
            for record in group.log.records.values()
            if group.log.topic == EMBEDDINGS
            and (record.key or b"").endswith(b"#ahead")
            and record.lane == group.lane
            and record.offset < group.committed
        ]
        limits = [part for part in told if part.meta and part.meta.groups is not None]
        if limits and not newer(head.change, (last := max(limits, key=lambda part: part.change.revision)).change):
            allowed = set((last.meta and last.meta.groups) or ())
            for groups in self.live.seen_by:
                assert groups is not None, f"everybody sees what {last.change} took away"
                assert set(groups) <= allowed

    def wanted(self, generation: Generation) -> Shown:
        """What visitors find when an index shows the highest revision."""
        return self._whole(self.winner, generation) if self.winner else {}

    def _whole(self, change: PageChange, generation: Generation) -> Shown:
        page = cut(change.encode(), generation.make.chunker, 0)
        return {(chunk.field, chunk.ord): (change.revision, chunk.text) for chunk in page.chunks}

    def check_whole(self, generation: Generation) -> None:
        """Of one revision everything is shown, and of others nothing."""
        if (head := generation.head) is None:
            assert generation.shown == {}
        else:
            change = self._saved(head.change.revision, head.change.op)
            assert generation.shown == ({} if head.unseen else self._whole(change, generation))

    def check_settled(self) -> None:
        """The highest revision stands: in the index, in every topic, on the receipt."""
        assert self.winner is not None
        head = self.live.head
        assert head is not None
        assert (head.change.revision, head.change.op) == (self.winner.revision, self.winner.op)
        assert self.live.shown == self.wanted(self.live)
        seen_by = {self._groups.get(self.winner.revision)} if self.live.shown else set()
        assert self.live.seen_by == seen_by
        assert self.live.lengths <= {self.live.make.model.dims}
        assert self.promised is not None
        assert (self.promised.revision, self.promised.op) == (self.winner.revision, self.winner.op)
        assert PageChange.decode(self.logs[CHANGES].tops()[KEY].value) == self.winner
        last = PageChunks.decode(self.logs[CHUNKS].tops()[KEY].value).change
        assert (last.revision, last.op) == (self.winner.revision, self.winner.op)
