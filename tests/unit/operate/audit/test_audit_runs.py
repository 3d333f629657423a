"""Audits that nobody waits for: one of a site at a time, whichever gateway it was begun at, and whatever dies."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from pipelines.operate import site_runs
from pipelines.operate.audit.repair import AuditOrder, AuditRun, AuditRunning, AuditRuns
from pipelines.operate.site_runs import LEASE
from pipelines.runtime.errors import Retryable
from schemas.base import Wire
from tests.fakes.ports import FakeAudits
from tests.fakes.stores import FakeStates

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
AUDIT, REPAIR = AuditOrder(), AuditOrder(repair=True, force=True)


class World:
    """Gateways with a store and a clock in common."""

    def __init__(self) -> None:
        self.now = NOON
        self.states = FakeStates()
        self.audits = FakeAudits(counts={"missing": 2})
        self.made: list[AuditRuns] = []

    def gateway(self) -> AuditRuns:
        self.made.append(AuditRuns(self.states, self.audits, lambda: self.now, settle=0))
        return self.made[-1]

    async def over(self, gateway: AuditRuns) -> AuditRun:
        async with asyncio.timeout(60):
            while (run := await gateway.last("town")) is None or run.state(self.now) == "running":  # noqa: ASYNC110  # nothing tells when
                await asyncio.sleep(0.001)
        return run


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(site_runs, "BEAT", 0.001)
    return World()


async def test_an_audit_is_begun_and_its_end_is_seen_at_every_gateway(world: World) -> None:
    here, there = world.gateway(), world.gateway()
    assert await here.last("town") is None
    world.audits.holds = asyncio.Event()
    begun = await here.start("town", AUDIT, "admin")
    assert (begun.state(world.now), begun.by) == ("running", "admin")
    with pytest.raises(AuditRunning):
        await there.start("town", AUDIT, "admin")
    with pytest.raises(AuditRunning):
        await here.start("town", REPAIR, "admin")
    async with asyncio.timeout(60):
        while (seen := await there.last("town")) is None or seen.step != "log":  # noqa: ASYNC110  # nothing tells when
            await asyncio.sleep(0.001)
    assert (seen.done, seen.total) == (1, 2)
    world.audits.holds.set()
    run = await world.over(there)
    assert run.state(world.now) == "done"
    assert run.found is not None
    assert (run.found.counts, run.left) == ({"missing": 2}, None)


async def test_a_repair_says_what_was_found_before_and_after(world: World) -> None:
    gateway = world.gateway()
    await gateway.start("town", REPAIR, "admin")
    run = await world.over(gateway)
    assert run.found is not None
    assert run.left is not None
    assert (run.found.counts, run.left.counts, run.sent) == ({"missing": 2}, {}, 1)
    assert world.audits.asked == [("town", True)]


@pytest.mark.parametrize(("error", "code"), [(Retryable("no broker"), "unavailable"), (None, "internal")])
async def test_what_goes_wrong_is_told(world: World, error: Retryable | None, code: str) -> None:
    gateway = world.gateway()
    world.audits.error = error or RuntimeError("unforeseen")  # type: ignore[assignment]  # what a fake may raise
    await gateway.start("town", AUDIT, "admin")
    run = await world.over(gateway)
    assert (run.state(world.now), run.code) == ("failed", code)
    world.audits.error = None
    await gateway.start("town", AUDIT, "admin")
    assert (await world.over(gateway)).state(world.now) == "done"


async def test_of_two_gateways_that_begin_at_once_one_does(world: World) -> None:
    world.audits.holds = asyncio.Event()
    begun = await asyncio.gather(
        *(world.gateway().start("town", AUDIT, "admin") for _ in range(2)), return_exceptions=True
    )
    assert sorted(isinstance(each, AuditRunning) for each in begun) == [False, True]
    await asyncio.gather(*(gateway.aclose() for gateway in world.made))


async def test_the_run_of_a_gateway_that_died_is_broken_off_and_another_may_begin(world: World) -> None:
    dead, alive = world.gateway(), world.gateway()
    world.audits.holds = asyncio.Event()
    await dead.start("town", AUDIT, "admin")
    [task] = dead._runs._tasks
    frozen = dict(world.states.kept)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    world.states.kept = frozen  # it said nothing any more
    world.now += LEASE - timedelta(seconds=1)
    with pytest.raises(AuditRunning):
        await alive.start("town", AUDIT, "admin")
    world.now += timedelta(seconds=2)
    last = await alive.last("town")
    assert last is not None
    assert last.state(world.now) == "broken-off"
    world.audits.holds = None
    await alive.start("town", AUDIT, "admin")
    assert (await world.over(alive)).state(world.now) == "done"


async def test_who_has_lost_the_claim_stops_and_leaves_the_other_alone(world: World) -> None:
    slow, other = world.gateway(), world.gateway()
    world.audits.holds = asyncio.Event()
    begun = await slow.start("town", AUDIT, "admin")
    [task] = slow._runs._tasks
    taken = begun.model_copy(update={"by": "another", "began_at": NOON + timedelta(minutes=1)})
    await world.states.put("audit-run", "town", taken)
    async with asyncio.timeout(60):
        await asyncio.gather(task, return_exceptions=True)
    last = await other.last("town")
    assert last is not None
    assert last.by == "another"


async def test_a_note_whose_answer_was_lost_is_no_loss(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    replace, lost = world.states.replace, 0

    async def forgetful(kind: object, name: str, value: Wire, before: object) -> object:
        nonlocal lost
        done = await replace(kind, name, value, before)  # type: ignore[arg-type]  # handed on as it came
        if before is not None and lost < 2:
            lost += 1
            raise Retryable("the answer was lost")
        return done

    monkeypatch.setattr(world.states, "replace", forgetful)
    gateway = world.gateway()
    await gateway.start("town", AUDIT, "admin")
    assert (await world.over(gateway)).state(world.now) == "done"
    assert lost


async def test_a_gateway_that_ends_says_so(world: World) -> None:
    gateway = world.gateway()
    world.audits.holds = asyncio.Event()
    await gateway.start("town", AUDIT, "admin")
    await asyncio.sleep(0.01)
    await gateway.aclose()
    run = await gateway.last("town")
    assert run is not None
    assert (run.state(world.now), run.code) == ("failed", "stopped")
