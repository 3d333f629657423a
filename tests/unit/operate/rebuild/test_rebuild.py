"""Promotion while editors go on saving: who is told that a save is searchable finds it, before and after the swap."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import cast

import pytest

from pipelines.evaluate.quality_gate import verdict
from pipelines.ingest.documents.attachments import Attachments
from pipelines.operate.rebuild import rebuild as module
from pipelines.operate.rebuild.generations import GenerationStore, generations, unnoted
from pipelines.operate.rebuild.index_builder import BuildTally, IndexBuilder
from pipelines.operate.rebuild.page_builder import SourceMessage
from pipelines.operate.rebuild.rebuild import Defaults, Rebuilder, TooSlow
from pipelines.runtime.bus import Bus
from pipelines.runtime.embedder import Embedders
from pipelines.runtime.errors import Retryable
from pipelines.runtime.indexes import IndexInfo
from pipelines.runtime.record import Record
from pipelines.runtime.retry import RetryPolicy
from schemas.ingest import Chunker
from schemas.rebuild import Rank, Rebuild, RebuildSource
from schemas.topics import Topic


def info(generation: int) -> IndexInfo:
    return IndexInfo(f"pagewire-town-{generation:06d}", "town", "fake", "fake-4", 4, "content-512-20")


OLD, NEW = info(1), info(2)
CANDIDATE = unnoted(NEW).model_copy(update={"state": "verified", "offsets": {0: 3}})
CHUNKER = Chunker.of("content-512-20")
PASSED = {0: 2}  # where the watermark found everything indexed


class Town:
    """A site with a live index and a candidate; an editor saves at every step that a promotion takes.

    `log`: the revisions, by offset. `indexes`: what is in each. `told`: the saves that have a receipt.
    """

    def __init__(self) -> None:
        self.log = [0, 1, 2]
        self.indexes = {OLD.name: {0, 1, 2}, NEW.name: {0, 1, 2}}
        self.live = OLD
        self.held: set[str] = set()
        self.told = {0, 1, 2}
        self.notes = {NEW.name: CANDIDATE}
        self.ends_are_there = asyncio.Event()
        self.ends_are_there.set()
        self.fails: str | None = None
        self.sharing = False

    def save(self) -> None:
        """As the ingest stages do it: into the log, into the live index, and a receipt unless the index is held."""
        revision = len(self.log)
        self.log.append(revision)
        self.indexes[self.live.name].add(revision)
        if self.live.name not in self.held:
            self.told.add(revision)

    def found_by_visitors(self) -> set[int]:
        return self.indexes[self.live.name]

    # What a rebuild asks of Elasticsearch.

    async def now(self, site: str) -> IndexInfo:
        return self.live

    async def generations(self, site: str) -> list[IndexInfo]:
        return [index for index in (OLD, NEW) if index.name in self.indexes]

    def shares(self, site: str) -> bool:
        return self.sharing

    async def hold(self, index: IndexInfo, seconds: float) -> None:
        self.save()
        self.held.add(index.name)
        self.save()

    async def release(self, index: IndexInfo) -> None:
        self.save()
        self.held.discard(index.name)

    async def searchable(self, index: IndexInfo) -> None:
        self.save()

    async def swap(self, site: str, index: IndexInfo) -> None:
        self.save()
        if self.fails == "swap":
            raise Retryable("Elasticsearch does not answer")
        self.live = index
        assert self.told <= self.found_by_visitors(), "told as searchable, and not to be found"
        self.save()

    async def of_site(self, site: str) -> list[Rebuild]:
        return list(self.notes.values())

    async def sizes(self, site: str) -> dict[str, tuple[int, int]]:
        return {name: (len(held) + 1, 1_000) for name, held in self.indexes.items()}

    async def contents(self, site: str, names: Sequence[str]) -> dict[str, tuple[int, int]]:
        return {name: (1, len(self.indexes[name])) for name in names}

    async def put(self, rebuild: Rebuild) -> None:
        self.save()
        self.notes[rebuild.index] = rebuild

    # What it asks of Kafka; `read` is also what reads attachments, which no page has.

    async def begins(self) -> dict[int, int]:
        return {0: 0}

    async def ends(self) -> dict[int, int]:
        await self.ends_are_there.wait()
        ends = {0: len(self.log)}
        self.save()
        return ends

    async def read(
        self, *, since: Mapping[int, int] | None = None, until: Mapping[int, int]
    ) -> AsyncGenerator[list[Record], None]:
        for offset in range((since or {}).get(0, 0), until[0]):
            yield [Record("cms.changes", 0, offset, b"town:en:fees", b"")]

    async def __aenter__(self) -> Town:
        return self

    async def __aexit__(self, *_: object) -> None: ...

    async def aclose(self) -> None: ...

    def reader(self, topic: Topic) -> Town:
        return self

    def scan(self, topic: Topic) -> Town:
        return self

    @property
    def store(self) -> GenerationStore:
        return cast(
            GenerationStore, SimpleNamespace(indexes=self, rebuilds=self, pages=SimpleNamespace(at=lambda index: None))
        )


class FakeBuilder(IndexBuilder):
    """Puts revisions into the candidate."""

    batches = 1

    def __init__(self, town: Town) -> None:
        self.tally = BuildTally()
        self._town = town

    async def decode(self, batch: Sequence[Record]) -> dict[str, list[SourceMessage]]:
        return {str(record.offset): [] for record in batch}

    async def write(
        self, pages: Mapping[str, Sequence[SourceMessage]], settled: Callable[[int], None] = lambda _: None
    ) -> None:
        self._town.indexes[NEW.name] |= set(map(int, pages))


@pytest.fixture
def town(monkeypatch: pytest.MonkeyPatch) -> Town:
    town = Town()
    monkeypatch.setattr(module, "IndexBuilder", lambda *_: FakeBuilder(town))

    async def indexed(bus: Bus) -> dict[int, int]:
        return PASSED

    monkeypatch.setattr(module, "indexed", indexed)
    return town


@pytest.fixture
def rebuilder(town: Town) -> Rebuilder:
    defaults = Defaults("fake", CHUNKER, RetryPolicy(tries=1, retry_for=0.0))
    return Rebuilder(
        "town", defaults, town.store, cast(Embedders, None), cast(Bus, town), lambda: cast(Attachments, town)
    )


async def test_whoever_is_told_of_a_save_can_find_it_while_an_index_is_promoted(
    town: Town, rebuilder: Rebuilder
) -> None:
    promoted = await rebuilder.promote()
    assert (town.live, promoted.state) == (NEW, "live")
    assert town.told <= town.found_by_visitors()
    assert len(town.told) > 3  # some were told: it is not simply held all the time
    assert OLD.name not in town.held


@pytest.mark.parametrize(
    ("source", "chunker", "sharing", "is_it"),
    [
        ("embeddings", None, False, True),
        ("embeddings", None, True, False),  # it has an index of its own
        ("chunks", None, False, False),  # the model that is configured is another one
        ("changes", Chunker.of("content-1000-20"), False, False),
    ],
)
async def test_what_is_live_may_be_as_wanted_already(
    town: Town, rebuilder: Rebuilder, source: RebuildSource, chunker: Chunker | None, sharing: bool, is_it: bool
) -> None:
    class Configured:
        async def by_name(self, spec: str) -> SimpleNamespace:
            return SimpleNamespace(spec=spec, fingerprint="fake-8", dims=8)

    rebuilder.embedders = cast(Embedders, Configured())
    town.sharing = sharing
    town.notes = {OLD.name: unnoted(OLD).model_copy(update={"state": "live"})}
    assert await rebuilder.is_as_wanted(source, chunker=chunker) is is_it


async def test_what_the_gate_found_stays_with_a_candidate_when_it_is_promoted(town: Town, rebuilder: Rebuilder) -> None:
    found = verdict([Rank(question="What does a card cost?", page="fees", live=1, candidate=None)])
    judged = await rebuilder.judged(CANDIDATE, found, OLD.name)
    assert judged.gate is not None
    assert (judged.gate.passed, judged.gate.worst, judged.gate.against) == (False, found.worst, OLD.name)
    assert (await rebuilder.promote()).gate == judged.gate
    assert (await generations(town.store, "town"))[-1].gate == judged.gate


async def test_what_was_replaced_is_kept_with_the_place_from_which_a_rollback_reads(
    town: Town, rebuilder: Rebuilder
) -> None:
    await rebuilder.promote()
    before = town.notes[OLD.name]
    assert (before.state, before.follows, before.offsets) == ("previous", "changes", PASSED)


async def test_a_candidate_that_does_not_catch_up_is_not_promoted_and_nothing_is_held(
    town: Town, rebuilder: Rebuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SWAP_BEFORE", 0.05)
    hold = town.hold

    async def hold_and_stall(index: IndexInfo, seconds: float) -> None:
        await hold(index, seconds)
        town.ends_are_there.clear()

    monkeypatch.setattr(town, "hold", hold_and_stall)
    with pytest.raises(TooSlow):
        await rebuilder.promote()
    assert (town.live, town.held) == (OLD, set())
    assert town.told <= town.found_by_visitors()


async def test_a_swap_that_fails_leaves_the_old_index_live_and_not_held(town: Town, rebuilder: Rebuilder) -> None:
    town.fails = "swap"
    with pytest.raises(Retryable):
        await rebuilder.promote()
    assert (town.live, town.held) == (OLD, set())
    assert town.notes[NEW.name].state == "verified"
