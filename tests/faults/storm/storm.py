"""The schedule: traffic and faults side by side for a while, then everything healed, settled, redriven and judged."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import chain
from random import Random

from tests.faults.storm.audit import product_audit
from tests.faults.storm.checker import Finding, judge
from tests.faults.storm.evidence import ReadBack
from tests.faults.storm.faults import CATALOGUE, Fault
from tests.faults.storm.history import Answer
from tests.faults.storm.readback import read_back, settle
from tests.faults.storm.redrive import redrive
from tests.faults.storm.traffic import Traffic
from tests.faults.storm.world import World

SETTLE_LIMIT = 900.0  # seconds after the last fault until everything must have come to rest
LULL = (1.0, 5.0)  # seconds between two faults of a lane
AT_ONCE = 3  # faults at the same time
PULSE = 15.0  # seconds between two signs of life

Kind = Callable[[Random], Fault]
Lanes = Mapping[str, Sequence[Kind]]
Besides = Callable[[World, asyncio.Event], Coroutine[None, None, None]]


@dataclass
class Outcome:
    """What a storm did and what came of it."""

    seed: str
    seconds: float
    sent: int
    accepted: int
    superseded: int
    unknown: int
    faults: Counter[str]
    letters: int
    poison: int
    logged: int  # records in cms.changes: more than were accepted, when the product has put winners back on top
    restarts: list[str]
    findings: list[Finding]
    found: ReadBack = field(repr=False)

    def count(self, kind: str) -> int:
        return sum(finding.kind == kind for finding in self.findings)

    @property
    def clean(self) -> bool:
        return not self.findings


async def storm(
    world: World,
    *,
    seconds: float | None = None,
    lanes: Lanes = CATALOGUE,
    first: Sequence[Kind] = (),
    beside: Sequence[Besides] = (),
) -> Outcome:
    """Weather it.

    Args:
        seconds: How long faults go on; None: until each of them has struck once.
        lanes: Faults by lane; those of a lane come one after the other.
        first: Faults that come before all others, in this order.
        beside: What else goes on meanwhile, until the event is set.
    """
    traffic = Traffic(world)
    await traffic.first_saves()
    world.note("first saves sent")
    await settle(world, SETTLE_LIMIT)
    world.note("first saves settled; the storm begins")
    began = world.history.now()
    faults: Counter[str] = Counter()
    stop = asyncio.Event()
    work = [asyncio.create_task(each(world, stop)) for each in (_writing(traffic), *beside)]
    pulse = asyncio.create_task(_pulse(world), name="pulse")
    slots = asyncio.Semaphore(AT_ONCE)
    end = None if seconds is None else began + seconds
    try:
        for kind in first:
            fault = kind(world.random("first faults"))
            await inflict(world, fault)
            faults[str(fault)] += fault.struck
        async with asyncio.TaskGroup() as group:
            for name, kinds in lanes.items():
                group.create_task(_lane(world, name, kinds, end, slots, faults), name=name)
    finally:
        pulse.cancel()
        stop.set()
        await asyncio.gather(*work, pulse, return_exceptions=True)
    for each in work:
        each.result()
    lasted = world.history.now() - began
    world.note("the storm is over; waiting for rest")
    letters = await redrive(world, SETTLE_LIMIT)
    found = await read_back(world)
    findings = judge(world.history, found, world.unread)
    findings += await product_audit(world, clean=not findings)
    history = world.history
    return Outcome(
        seed=world.seed,
        seconds=lasted,
        sent=len(history.sent),
        accepted=history.count(Answer.ACCEPTED, Answer.TAKEN),
        superseded=history.count(Answer.SUPERSEDED),
        unknown=history.count(Answer.UNKNOWN),
        faults=faults,
        letters=letters,
        poison=len(history.poison),
        logged=sum(len(page.changes) for page in found.pages.values()),
        restarts=list(world.crew.ended_by_themselves),
        findings=findings,
        found=found,
    )


def _writing(traffic: Traffic) -> Besides:
    return lambda world, stop: traffic.run(stop)


async def _lane(
    world: World,
    name: str,
    kinds: Sequence[Kind],
    end: float | None,
    slots: asyncio.Semaphore,
    faults: Counter[str],
) -> None:
    """Its faults in seeded order: each once, or again and again until the end."""
    random = world.random(name)
    rounds = [_shuffled(kinds, random)] if end is None else iter(lambda: _shuffled(kinds, random), None)
    for kind in chain.from_iterable(rounds):
        await asyncio.sleep(random.uniform(*LULL))
        if end is not None and world.history.now() >= end:
            return
        fault = kind(random)
        async with slots, AsyncExitStack() as held:
            for thing in sorted(fault.needs):
                await held.enter_async_context(world.locks[thing])
            await inflict(world, fault)
        faults[str(fault)] += fault.struck


async def inflict(world: World, fault: Fault) -> None:
    """Strike, hold, heal; whatever happens in between, it is healed."""
    world.note(f"{fault} strikes")
    try:
        await fault.strike(world)
        await asyncio.sleep(fault.seconds)
    finally:
        await fault.heal(world)
        world.note(f"{fault} healed" if fault.struck else f"{fault} did not strike")


def _shuffled(kinds: Iterable[Kind], random: Random) -> list[Kind]:
    order = list(kinds)
    random.shuffle(order)
    return order


async def _pulse(world: World) -> None:
    history = world.history
    while True:
        await asyncio.sleep(PULSE)
        world.say(
            f"{history.now():8.2f} .. {len(history.sent)} changes sent, {history.count(Answer.ACCEPTED)} accepted, "
            f"{history.count(Answer.SUPERSEDED)} superseded, {history.count(Answer.UNKNOWN)} unknown, "
            f"{history.count(Answer.REFUSED)} refused"
        )
