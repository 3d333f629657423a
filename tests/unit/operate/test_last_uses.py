"""When something was used last, to the hour, and connectors' runs: what of it is written, and what it costs."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from pipelines.operate import states
from pipelines.operate.states import ConnectorRuns, LastUses, of_key
from pipelines.runtime.errors import Retryable
from schemas.connector_run import RunKind
from tests.fakes.stores import FakeStates

HOUR = datetime(2026, 5, 4, 12, tzinfo=UTC)
CMS = of_key("cms")


class World:
    """Gateways with a store and a clock in common."""

    def __init__(self) -> None:
        self.now = HOUR + timedelta(minutes=7)
        self.states = FakeStates()

    def gateway(self) -> LastUses:
        return LastUses(self.states, lambda: self.now)


@pytest.fixture
def world() -> World:
    return World()


async def test_a_key_is_written_once_an_hour_however_often_it_is_used(world: World) -> None:
    here, there = world.gateway(), world.gateway()
    for gateway in (here, here, there):
        for _ in range(100):
            gateway.note(CMS)
        assert world.states.writes <= 1  # a request writes nothing
        await gateway.flush()
    assert await there.known() == {CMS: HOUR}
    assert world.states.writes == 1
    world.now += timedelta(hours=1)
    there.note(CMS)
    await there.flush()
    assert await here.known() == {CMS: HOUR + timedelta(hours=1)}


async def test_a_late_gateway_puts_nothing_back(world: World) -> None:
    late, other = world.gateway(), world.gateway()
    late.note(CMS)
    world.now += timedelta(hours=3)
    other.note(CMS)
    await other.flush()
    await late.flush()
    assert await late.known() == {CMS: HOUR + timedelta(hours=3)}


async def test_what_cannot_be_written_is_written_later(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(states, "FLUSH", 0.001)
    gateway = world.gateway()
    world.states.error = Retryable("Elasticsearch is away")
    await gateway.start()
    gateway.note(CMS)
    await asyncio.sleep(0.01)
    world.states.error = None
    async with asyncio.timeout(60):
        while not await gateway.known():  # noqa: ASYNC110  # nothing tells when it is written
            await asyncio.sleep(0.001)
    world.now += timedelta(hours=1)
    gateway.note(CMS)
    await gateway.aclose()
    assert await gateway.known() == {CMS: HOUR + timedelta(hours=1)}


async def test_a_run_is_noted_when_it_begins_and_when_it_ends(world: World) -> None:
    runs = ConnectorRuns(world.states, lambda: world.now)
    place = ("town", "blog")
    async with runs.run(*place, "reconcile", "root") as came:
        begun = (await runs.last())[place]
        assert (begun.what, begun.by, begun.began_at, begun.ended_at) == ("reconcile", "root", world.now, None)
        came.sent, came.failed, came.refused = 3, 1, True
        world.now += timedelta(minutes=1)
    ended = (await runs.last())[place]
    assert (ended.sent, ended.failed, ended.refused, ended.ended_at, ended.code) == (3, 1, True, world.now, "")


@pytest.mark.parametrize(
    ("what", "error", "code"),
    [
        ("import", Retryable("the CMS is away"), "unavailable"),
        ("import", ValueError("unforeseen"), "internal"),
        ("import", asyncio.CancelledError(), "stopped"),
        ("watch", asyncio.CancelledError(), ""),
    ],
)
async def test_how_it_ended_is_noted_and_goes_on_as_it_is(
    world: World, what: RunKind, error: BaseException, code: str
) -> None:
    runs = ConnectorRuns(world.states, lambda: world.now)
    with pytest.raises(type(error)):
        async with runs.run("town", "blog", what, "root"):
            raise error
    ended = (await runs.last())["town", "blog"]
    assert (ended.code, ended.ended_at) == (code, world.now)


async def test_a_run_does_not_depend_on_its_note(world: World) -> None:
    world.states.error = Retryable("Elasticsearch is away")
    runs = ConnectorRuns(world.states, lambda: world.now)
    async with runs.run("town", "blog", "import", "root") as came:
        came.sent = 1
    world.states.error = None
    assert await runs.last() == {}
