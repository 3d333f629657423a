"""The storm's short form: every fault once over real saves, and nothing lost; and the checker sees what is planted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from tests.faults.rig import until
from tests.faults.storm import planted
from tests.faults.storm.checker import Finding, judge
from tests.faults.storm.elastic_proxy import CALM, Mood
from tests.faults.storm.own_engine import OwnEngine, own_engine
from tests.faults.storm.readback import read_back, settle
from tests.faults.storm.report import histories
from tests.faults.storm.scripted_embedder import CALM as QUICK
from tests.faults.storm.scripted_embedder import Mood as Pace
from tests.faults.storm.storm import storm
from tests.faults.storm.traffic import Traffic
from tests.faults.storm.world import Shape, World, open_world

SEED = "4"
LIMIT = 180.0  # seconds until a quiet system has come to rest
SMALL = 12  # pages
ACKNOWLEDGED = 2.0  # seconds after which a worker that acknowledges early has done so; the embedder takes longer

Open = Callable[[str, Shape], AbstractAsyncContextManager[World]]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnEngine]:
    with asyncio.Runner() as runner:
        context = own_engine(tmp_path_factory.mktemp("engine"))
        yield runner.run(context.__aenter__())
        runner.run(context.__aexit__(None, None, None))


@pytest.fixture
def opened(engine: OwnEngine, tmp_path: Path) -> Open:
    @asynccontextmanager
    async def opening(name: str, shape: Shape) -> AsyncIterator[World]:
        async with open_world(engine, tmp_path / name, SEED, shape, print, name) as world:
            yield world

    return opening


async def test_every_fault_once_and_nothing_is_lost(opened: Open) -> None:
    async with opened("storm", Shape(pages=40, rate=8)) as world:
        outcome = await storm(world)
        assert outcome.clean, "\n".join(histories(world, outcome))
        assert outcome.accepted > 100
        assert sum(outcome.faults.values()) > 20
        assert outcome.letters == 0  # what no fault of the pages is buries no page


async def kill_at_work(world: World, traffic: Traffic) -> None:
    """Workers die with pages in their hands."""
    await traffic.first_saves()
    await settle(world, LIMIT)
    world.embedder.mood = Pace(delay=5.0)
    await traffic.first_saves()
    await until("pages are with the embedder", lambda: world.embedder.at_work > 0)
    await asyncio.sleep(ACKNOWLEDGED)
    await asyncio.gather(*map(world.crew.kill, world.workers))
    world.embedder.mood = QUICK
    for name in world.workers:
        world.crew.start(name)
    await world.crew.ready(*world.workers)


async def send_late_ones(world: World, traffic: Traffic) -> None:
    """An older change stands behind the newer one in the log: the edge could not know."""
    await traffic.first_saves()
    await asyncio.gather(*map(world.crew.stop, world.workers))
    random = world.random("late")
    for draft in world.drafts:
        newest = max(sent.order[0] for sent in world.history.of(draft.key) if sent.order) + 1_000
        for revision in (newest, newest - 1):
            draft.edit(random)
            await traffic.save(draft, random, "late", given=revision)
    for name in world.workers:
        world.crew.start(name)
    await world.crew.ready(*world.workers)


async def delete_all(world: World, traffic: Traffic) -> None:
    await traffic.first_saves()
    for draft in world.drafts:
        await traffic.delete(draft, world.random("delete"), "delete")


async def refuse_items(world: World, traffic: Traffic) -> None:
    await traffic.first_saves()
    await settle(world, LIMIT)
    world.proxy.mood = Mood(refuse_items=0.5)
    await traffic.first_saves()
    await settle(world, LIMIT)
    world.proxy.mood = CALM


SCENARIOS = {
    "ack-first": (kill_at_work, "lost"),
    "last-writer": (send_late_ones, "lost"),
    "leaves-chunks": (delete_all, "ghost"),
    "deaf-bulk": (refuse_items, "mixed"),
}


async def judged(world: World) -> list[Finding]:
    await settle(world, LIMIT)
    return judge(world.history, await read_back(world))


@pytest.mark.parametrize("defect", SCENARIOS)
async def test_the_checker_sees_a_planted_defect(opened: Open, defect: str) -> None:
    play, kind = SCENARIOS[defect]
    shape = Shape(workers=1, gateways=1, pages=SMALL, program=planted.__name__, extra={planted.VARIABLE: defect})
    async with opened(defect, shape) as world:
        await play(world, Traffic(world))
        assert kind in {finding.kind for finding in await judged(world)}


async def test_without_a_defect_the_same_scenes_end_well(opened: Open) -> None:
    async with opened("sound", Shape(workers=1, gateways=1, pages=SMALL)) as world:
        traffic = Traffic(world)
        for play, _ in SCENARIOS.values():
            await play(world, traffic)
        assert await judged(world) == []
