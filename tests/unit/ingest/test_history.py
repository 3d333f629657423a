"""Any interleaving of a page's history ends in its highest revision: found, in every topic, and on the receipt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.ingest.fill import Filler, Target
from pipelines.runtime.guard import RetryPolicy
from pipelines.runtime.record import LANES
from schemas.topics import CHANGES, CHUNKS, EMBEDDINGS
from tests.page_history import Generation, SmallParts, View, World

REVISIONS = range(1, 5)

cores = st.fixed_dictionaries({revision: st.integers(0, 6) for revision in REVISIONS})
saves = st.tuples(
    st.just("save"), st.sampled_from(REVISIONS), st.sampled_from(["upsert", "delete"]), st.sampled_from(LANES)
)
steps = st.tuples(st.just("step"), st.integers(0, 9), st.integers(1, 12))
troubles = st.one_of(
    st.tuples(st.sampled_from(["kill", "pause"]), st.integers(0, 5)),
    st.tuples(st.just("replay"), st.integers(0, 5)),
    st.tuples(st.just("promote"), st.integers(0, 2)),
    st.tuples(st.sampled_from(["roll_back", "kill_promotion", "compact", "forget"])),
)
histories = st.lists(st.one_of(saves, steps, steps, steps, troubles), max_size=40)


def play(lengths: dict[int, int], first: tuple[Any, ...], history: Sequence[tuple[Any, ...]]) -> World:
    world = World(lengths)
    for name, *how in (first, *history):
        getattr(world, name)(*how)
    world.settle()
    return world


async def rebuilt(world: World, source: Any) -> Generation:
    """A new index like the live one, filled from a topic."""
    topic = {"changes": CHANGES, "chunks": CHUNKS, "embeddings": EMBEDDINGS}[source]
    make = world.live.make
    new = Generation(make)

    async def model() -> Any:
        return make.model

    target = Target("town", "fake", make.model.fingerprint, make.model.dims, make.chunker, model)
    view = View(world)
    filler = Filler(
        source, target, new, view, SmallParts(view, view), world.logs[CHANGES], RetryPolicy(tries=1, retry_for=0)
    )
    for record in list(world.logs[topic].records.values()):
        await filler.write(await filler.decode([record]))
    assert filler.tally.failures == 0
    new.refreshed()
    return new


async def check(lengths: dict[int, int], first: tuple[Any, ...], history: Sequence[tuple[Any, ...]]) -> None:
    world = play(lengths, first, history)
    world.check_settled()
    world.compact()
    assert world.winner is not None
    for source in ("changes", "chunks", "embeddings"):
        new = await rebuilt(world, source)
        assert new.shown == new.wanted(world.winner), source


@settings(max_examples=300, deadline=None)
@given(lengths=cores, first=saves, history=histories)
async def test_any_interleaving_ends_in_the_highest_revision(
    lengths: dict[int, int], first: tuple[Any, ...], history: list[tuple[Any, ...]]
) -> None:
    await check(lengths, first, history)
