"""All gateways go by one clock, however wrong those of their machines are."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pipelines.ingest.accept import Change, Intake
from pipelines.runtime.errors import Retryable
from pipelines.runtime.metrics import CLOCK_AHEAD
from pipelines.runtime.servers_clock import ServersClock
from schemas.page import Op, PageDocument
from tests.fakes.pages import FakePages, FakeSender
from wiring.settings import Settings, SiteSettings

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
SETTINGS = Settings(sites={"town": SiteSettings()})


class World:
    """Seconds since noon, and machines whose clocks are off. A look takes `trip` seconds."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.trip = 0.0
        self.away = False

    def time(self) -> datetime:
        return NOON + timedelta(seconds=self.seconds)

    async def ask(self) -> datetime:
        self.seconds += self.trip / 2
        if self.away:
            raise Retryable("no Elasticsearch")
        there = self.time()
        self.seconds += self.trip / 2
        return there

    def clock(self, ahead: timedelta) -> ServersClock:
        return ServersClock(self.ask, lambda: self.time() + ahead, lambda: self.seconds)


@pytest.mark.parametrize("ahead", [HOUR, -HOUR, timedelta()])
async def test_the_time_is_the_servers(ahead: timedelta) -> None:
    world = World()
    clock = world.clock(ahead)
    world.trip = 0.5
    assert await clock.look()
    world.seconds += 3
    assert clock() == world.time()
    assert CLOCK_AHEAD._value.get() == ahead.total_seconds()


async def test_what_is_known_stays_while_the_servers_are_away() -> None:
    world = World()
    clock = world.clock(HOUR)
    world.away = True
    assert not await clock.look()
    assert clock() == world.time() + HOUR  # there is no other
    world.away = False
    await clock.look()
    world.away = True
    world.seconds += 600
    assert not await clock.look()
    assert clock() == world.time()


async def test_of_two_gateways_with_clocks_an_hour_apart_the_later_save_wins() -> None:
    """Also within the second in which neither knows of the other's."""
    world = World()
    gateways = []
    for ahead in (HOUR, -HOUR):
        clock = world.clock(ahead)
        await clock.look()
        gateways.append(Intake(FakeSender(), FakePages(), SETTINGS, clock))
    revisions = []
    for n, op in enumerate[Op](("upsert", "delete", "upsert", "delete")):
        world.seconds += 1
        [accepted] = await gateways[n % 2].accept("town", [Change(op, PageDocument(id="fees"))], "push")
        revisions.append(accepted.revision)
    assert revisions == sorted(set(revisions))
