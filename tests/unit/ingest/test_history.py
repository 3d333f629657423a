"""Any interleaving of a page's history ends in its highest revision: found, in every topic, and on the receipt."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import get_args

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipelines.operate.rebuild.index_builder import BuildTarget, IndexBuilder
from pipelines.runtime.embedder import Embedder
from pipelines.runtime.record import LANES
from pipelines.runtime.retry import RetryPolicy
from schemas.page import Op, PageChange
from schemas.rebuild import RebuildSource
from schemas.topics import CHANGES, CHUNKS, EMBEDDINGS
from tests.making import no_attachments
from tests.page_history import Groups, SmallParts, View, World
from tests.page_servers import KEY, Generation, Make, makes

REVISIONS = range(1, 5)
TROUBLES = ("is paused", "is killed", "replay", "promote", "roll_back", "compact", "forget")
TOPICS = {"changes": CHANGES, "chunks": CHUNKS, "embeddings": EMBEDDINGS}

Action = tuple[str | int, ...]  # a method of World, and how
Lengths = dict[int, int]  # of the page at each revision, in chunks

lengths = st.fixed_dictionaries({revision: st.sampled_from([0, 1, 3, 5]) for revision in REVISIONS})
saves = st.tuples(st.just("save"), st.sampled_from(REVISIONS), st.sampled_from(get_args(Op)), st.sampled_from(LANES))


def with_troubles(kinds: Collection[str]) -> st.SearchStrategy[list[Action]]:
    """Saves and steps, with these kinds of trouble only: where everything happens, little gets far."""
    then = st.sampled_from(["goes on", *(kind for kind in kinds if kind.startswith("is "))])
    steps = st.tuples(st.just("step"), st.integers(0, 7), st.integers(1, 20), then)
    troubles = {
        "replay": st.tuples(st.just("replay"), st.integers(0, 5)),
        "promote": st.tuples(st.just("promote"), st.integers(0, 2)),
        "bury": st.tuples(st.just("bury"), st.sampled_from(LANES)),
    }
    others = [troubles.get(kind, st.just((kind,))) for kind in kinds if not kind.startswith("is ")]
    return st.lists(st.one_of(saves, steps, steps, steps, *others), max_size=50)


histories = st.sets(st.sampled_from(TROUBLES), max_size=4).map(sorted).flatmap(with_troubles)


async def rebuilt(
    world: World, source: RebuildSource, lost: int = 0, batch: int = 1, make: Make | None = None
) -> Generation:
    """A new index, filled from a topic; as many pages as `lost` are told to be so.

    Args:
        batch: records that are written at once.
        make: what it is for; default: as the live one.
    """
    make = make or world.live.make

    async def model() -> Embedder:
        return make.model

    new, view = Generation(make), View(world)
    target = BuildTarget("town", "fake", make.model.fingerprint, make.model.dims, make.chunker, model)
    embedding, policy = SmallParts(view, view), RetryPolicy(tries=1, retry_for=0)
    filler = IndexBuilder(source, target, new, view, embedding, world.logs[CHANGES], no_attachments, policy)
    records = list(world.logs[TOPICS[source]].records.values())
    for at in range(0, len(records), batch):
        await filler.write(await filler.decode(records[at : at + batch]))
    assert filler.tally.failures == lost, filler.tally.failed
    new.refreshed()
    return new


SHORT = dict.fromkeys(REVISIONS, 0)
LONG = dict.fromkeys(REVISIONS, 5)


@settings(max_examples=3 * settings().max_examples)
@given(lengths=lengths, first=saves, history=histories, seed=st.integers(0, 2**32))
# What it has found so far, at its smallest. Two workers look at the head before either writes it; ...
@example(SHORT, ("save", 1, "upsert", "bulk"), [("save", 3, "upsert", "save")], 0)
@example(LONG, ("save", 1, "upsert", "bulk"), [("save", 3, "upsert", "save")], 0)
@example(LONG, ("save", 1, "upsert", "bulk"), [("save", 1, "delete", "save")], 0)
@example(SHORT, ("save", 1, "delete", "save"), [("save", 1, "upsert", "bulk")], 0)
# ... the loser's chunks came to light with the winner's refresh; ...
@example({1: 0, 2: 3, 3: 0, 4: 0}, ("save", 2, "delete", "bulk"), [("save", 2, "upsert", "save")], 8566672)
# ... and another index, which knows nothing of the loser, becomes live before the winner is sent again.
@example(SHORT, ("save", 1, "upsert", "bulk"), [("save", 3, "upsert", "save"), ("promote", 0)], 0)
@example(SHORT, ("save", 1, "upsert", "bulk"), [("save", 3, "upsert", "save"), ("promote", 1)], 0)
# A loser's only part stands between two parts of the winner.
@example({1: 0, 2: 3, 3: 0, 4: 0}, ("save", 1, "upsert", "save"), [("save", 2, "upsert", "bulk")], 2532)
# Of the parts of an older revision only some were overwritten in the topic that a rebuild reads.
@example(LONG, ("save", 4, "upsert", "save"), [("save", 4, "delete", "save")], 0)
# Of a deleted page's parts some stood behind the tombstones, and a rebuild showed them.
@example(
    {1: 5, 2: 0, 3: 0, 4: 0},
    ("save", 1, "upsert", "save"),
    [
        ("save", 1, "upsert", "save"),
        ("save", 1, "upsert", "save"),
        ("save", 1, "upsert", "bulk"),
        ("save", 1, "delete", "bulk"),
        ("step", 0, 7, "goes on"),
        ("step", 2, 9, "goes on"),
    ],
    728,
)
# Another index became live between two parts, and it did not know which older change stands behind them.
@example(
    {1: 0, 2: 0, 3: 3, 4: 0},
    ("save", 1, "upsert", "save"),
    [("save", 3, "upsert", "bulk"), ("promote", 0), ("step", 1, 4, "goes on")],
    477,
)
# A promotion met the loser, and remembered where it stands, but not in which partition.
@example(
    SHORT,
    ("save", 1, "delete", "bulk"),
    [("promote", 0), ("save", 1, "upsert", "save")],
    1356,
)
# Of a copy of what is shown the first parts were dropped with those that are shown, and nobody knew where it stands.
@example(
    {1: 0, 2: 0, 3: 5, 4: 0},
    ("save", 1, "upsert", "save"),
    [("save", 3, "upsert", "bulk"), ("save", 4, "upsert", "bulk"), ("save", 3, "upsert", "save")],
    0,
)
# Copies in two lanes overtook each other in each topic, and each made the next.
@example(
    {1: 0, 2: 0, 3: 5, 4: 3},
    ("save", 2, "delete", "bulk"),
    [
        ("save", 4, "upsert", "bulk"),
        ("save", 4, "upsert", "save"),
        ("save", 4, "upsert", "save"),
        ("step", 0, 6, "goes on"),
        ("step", 3, 1, "goes on"),
    ],
    0,
)
# Of two copies the earlier one's products stood behind the later one's, and pointed to a place where nothing is.
@example({1: 3, 2: 0, 3: 0, 4: 0}, ("save", 1, "upsert", "bulk"), [("save", 1, "upsert", "save")], 14471567)
# Of two copies the earlier one's parts stood behind some of the later one's, and the log held only the later one: for
# another model nothing could be made of either.
@example(
    {1: 0, 2: 0, 3: 0, 4: 5},
    ("save", 1, "upsert", "bulk"),
    [
        ("promote", 1),
        ("save", 1, "upsert", "save"),
        ("save", 1, "upsert", "save"),
        ("save", 4, "upsert", "bulk"),
        ("step", 0, 1, "goes on"),
        ("step", 0, 1, "goes on"),
        ("step", 1, 5, "goes on"),
        ("step", 2, 1, "goes on"),
        ("step", 0, 1, "goes on"),
        ("step", 0, 2, "goes on"),
        ("save", 1, "delete", "save"),
    ],
    2,
)
# A tombstone that hid nothing of what was shown hid a part of a longer, newer page that the index stage met later.
@example(
    {1: 5, 2: 0, 3: 5, 4: 0},
    ("save", 1, "upsert", "save"),
    [
        *[("step", 0, 99, "goes on")] * 3,
        ("save", 2, "upsert", "bulk"),
        ("save", 3, "upsert", "save"),
        ("step", 1, 99, "goes on"),
        ("step", 0, 99, "goes on"),
        ("step", 1, 5, "goes on"),
        ("step", 0, 99, "goes on"),
        ("step", 0, 99, "goes on"),
        ("step", 1, 99, "goes on"),
    ],
    0,
)
# A worker that was taken for dead sent the first of three parts once more, and then died: behind a newer page.
@example(
    {1: 5, 2: 5, 3: 0, 4: 0},
    ("save", 1, "upsert", "bulk"),
    [
        ("save", 2, "upsert", "save"),
        ("step", 1, 99, "goes on"),
        ("step", 0, 99, "goes on"),
        ("step", 1, 2, "is paused"),
        ("step", 1, 99, "goes on"),
        ("step", 0, 99, "goes on"),
        ("step", 2, 3, "is killed"),
        ("step", 1, 99, "goes on"),
    ],
    0,
)
# A rebuild and a worker put one page together in the index that had become live, and one took away the other's parts.
@example(
    {1: 0, 2: 3, 3: 0, 4: 5},
    ("save", 1, "delete", "bulk"),
    [
        ("promote", 1),
        ("save", 1, "delete", "save"),
        ("save", 2, "upsert", "save"),
        ("save", 4, "upsert", "bulk"),
        ("step", 0, 2, "goes on"),
        ("step", 1, 9, "goes on"),
        ("step", 1, 1, "goes on"),
    ],
    7,
)
async def test_any_interleaving_ends_in_the_highest_revision(
    lengths: Lengths, first: Action, history: Sequence[Action], seed: int
) -> None:
    """`seed`: who goes on when the history is over (0: everybody in step)."""
    world = World(lengths)
    for name, *how in (first, *history):
        getattr(world, str(name))(*how)
    world.settle(seed)
    world.check_settled()
    world.compact()
    for source in get_args(RebuildSource):
        for make in makes():
            new = await rebuilt(world, source, make=make)
            assert new.shown == world.wanted(new), (source, make)


@pytest.mark.parametrize("source", get_args(RebuildSource))
@pytest.mark.parametrize("length", [0, 5])
async def test_what_the_old_index_had_met_does_not_outlive_what_a_rebuild_puts_in(
    source: RebuildSource, length: int
) -> None:
    """An older delete overtakes a page in all topics and is shown; then another index becomes live, without it."""
    world = World(dict.fromkeys(REVISIONS, length))
    world.save(2, "upsert", "save")
    world.save(1, "delete", "bulk")
    chunk_save, chunk_bulk, embed_save, embed_bulk, _, index_bulk = (group.owner for group in world.groups)
    for worker in (chunk_save, chunk_bulk, embed_save, embed_bulk, index_bulk):
        while not worker.idle:
            worker.step()
    assert (head := world.live.head) is not None
    assert head.change.revision == 1
    world.live = await rebuilt(world, source, batch=100)
    world.generations.append(world.live)
    world.settle(0)
    world.check_settled()
    world.compact()
    for topic in get_args(RebuildSource):
        assert (await rebuilt(world, topic)).shown == world.wanted(world.live), topic


burials = (
    st.sets(st.sampled_from(TROUBLES), max_size=2).map(lambda kinds: sorted({*kinds, "bury"})).flatmap(with_troubles)
)


@settings(max_examples=3 * settings().max_examples // 2)
@given(lengths=lengths, first=saves, history=burials, seed=st.integers(0, 2**32))
# The middle one of three parts is dead.
@example(
    LONG,
    ("save", 1, "upsert", "save"),
    [("step", 0, 99, "goes on")] * 3
    + [("save", 2, "upsert", "save")]
    + [("step", 0, 99, "goes on")] * 2
    + [("step", 0, 4, "goes on"), ("bury", "save")],
    0,
)
# A second copy of a deletion was applied ahead when a loser had come, and forgot where that stands.
@example(
    SHORT,
    ("save", 1, "delete", "save"),
    [
        ("save", 1, "delete", "bulk"),
        ("step", 0, 1, "goes on"),
        ("save", 2, "delete", "save"),
        ("save", 2, "delete", "save"),
    ],
    6,
)
# The last part came before another index was promoted, for another model, and the first one was redriven after it.
@example(
    {1: 0, 2: 3, 3: 0, 4: 0},
    ("save", 2, "upsert", "save"),
    [("step", 0, 3, "goes on"), ("step", 1, 5, "goes on"), ("bury", "save"), ("promote", 1)],
    0,
)
# Copies in two lanes overtook each other in each topic, and each made the next.
@example(
    {1: 1, 2: 3, 3: 0, 4: 5},
    ("save", 3, "upsert", "bulk"),
    [
        ("save", 4, "upsert", "save"),
        ("save", 3, "upsert", "bulk"),
        ("save", 4, "upsert", "bulk"),
        ("save", 4, "upsert", "save"),
        ("bury", "bulk"),
    ],
    0,
)
# An older delete was shown, and stood behind the page that had just come into the next index with the log.
@example(
    SHORT,
    ("save", 1, "delete", "bulk"),
    [
        ("save", 2, "upsert", "save"),
        ("step", 0, 4, "goes on"),
        ("step", 0, 5, "goes on"),
        ("promote", 0),
    ],
    7946353,
)
async def test_a_page_is_shown_whole_whatever_becomes_a_dead_letter_and_in_the_end_all_of_it_is_redriven(
    lengths: Lengths, first: Action, history: Sequence[Action], seed: int
) -> None:
    world = World(lengths)
    for name, *how in (first, *history):
        getattr(world, str(name))(*how)
    world.settle(seed)
    world.check_whole(world.live)
    world.check_whole(await rebuilt(world, "embeddings"))
    world.redrive()
    world.settle(seed)
    world.check_settled()
    world.compact()
    new = await rebuilt(world, "embeddings")
    assert new.shown == world.wanted(new)


groups = st.sampled_from([None, (), ("staff",), ("press",), ("press", "staff")])
limits = st.fixed_dictionaries(dict.fromkeys(REVISIONS, groups))
# An index that becomes live may not have been told yet: it is, as soon as the stage comes to it.
restrictions = (
    st.sets(st.sampled_from(["is paused", "is killed", "replay", "compact", "forget"]), max_size=3)
    .map(sorted)
    .flatmap(with_troubles)
)


@settings(max_examples=3 * settings().max_examples // 2)
@given(lengths=lengths, limits=limits, first=saves, history=restrictions, seed=st.integers(0, 2**32))
# Of two saves with one revision the second was the first one heard of.
@example(
    {1: 0, 2: 0, 3: 1, 4: 0},
    {1: None, 2: None, 3: (), 4: None},
    ("save", 3, "upsert", "save"),
    [("save", 1, "upsert", "save"), ("save", 3, "upsert", "bulk")],
    1531140,
)
async def test_nobody_finds_a_page_whom_its_newest_change_does_not_allow(
    lengths: Lengths, limits: dict[int, Groups], first: Action, history: Sequence[Action], seed: int
) -> None:
    world = World(lengths, limits)
    for name, *how in (first, *history):
        getattr(world, str(name))(*how)
    world.settle(seed)
    world.check_settled()
    world.compact()
    new = await rebuilt(world, "embeddings")
    assert (new.shown, new.seen_by) == (world.wanted(new), world.live.seen_by)


losers = st.lists(st.tuples(st.sampled_from(REVISIONS[:-1]), st.sampled_from(get_args(Op)), st.sampled_from(LANES)))


@settings(max_examples=3 * settings().max_examples // 2)
@given(lengths=lengths, op=st.sampled_from(get_args(Op)), before=losers, after=losers, seed=st.integers(0, 2**32))
@example(LONG, "delete", [], [(1, "upsert", "save")], 0)
@example(LONG, "upsert", [], [(1, "upsert", "save")], 0)
async def test_a_loser_that_outlived_the_winner_in_the_log_is_not_brought_back(
    lengths: Lengths, op: Op, before: Sequence[Action], after: Sequence[Action], seed: int
) -> None:
    """The index knows the winner; compaction took it before anybody could put it back on top."""
    world = World(lengths)
    for action in (*before, (REVISIONS[-1], op, "save")):
        world.save(*action)  # type: ignore[arg-type]
    world.settle(seed)
    for action in after:
        world.save(*action)  # type: ignore[arg-type]
    world.stand_still()
    lost = bool(after) and op == "upsert"
    assert (await rebuilt(world, "changes", lost=lost)).shown == ({} if lost else world.wanted(world.live))
    world.settle(seed)
    assert world.live.shown == world.wanted(world.live)
    top = PageChange.decode(world.logs[CHANGES].tops()[KEY].value)
    assert lost or (top.revision, top.op) == (REVISIONS[-1], op)
    world.compact()
    for source in get_args(RebuildSource):
        assert (await rebuilt(world, source, lost=lost)).shown == ({} if lost else world.wanted(world.live)), source
