"""The switches of the sites' chats."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from structlog.testing import capture_logs

from pipelines.operate import chat_switches
from pipelines.operate.chat_switches import ChatOffInFile, ChatSwitches
from pipelines.runtime.errors import Retryable
from tests.fakes.stores import FakeStates

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


class World:
    """A store, and processes with a clock in common."""

    def __init__(self) -> None:
        self.now = NOON
        self.store = FakeStates()

    def process(self, **enabled: bool) -> ChatSwitches:
        return ChatSwitches(self.store, enabled, lambda: self.now)


@pytest.fixture
def world() -> World:
    return World()


async def test_who_throws_it_is_heeded_at_once_and_by_others_after_their_next_look(world: World) -> None:
    here, there = world.process(), world.process()
    assert here.state("town").by == "default"
    state = await here.throw("town", on=False, by="admin")
    assert (state.on, state.by, state.changed_at, state.changed_by) == (False, "switch", NOON, "admin")
    assert (here.off("town"), here.off("other"), there.off("town")) == (True, False, False)
    under_way = there.went_off("town")
    await there.look()
    assert (there.off("town"), under_way.is_set(), there.went_off("other").is_set()) == (True, True, False)
    world.now += timedelta(minutes=1)
    await there.throw("town", on=True, by="admin")
    await here.look()
    assert (here.off("town"), under_way.is_set()) == (False, False)
    # A process that starts later finds it as it was left.
    late = world.process()
    await late.look()
    assert (late.state("town").by, late.off("town")) == ("switch", False)


async def test_processes_look_by_themselves_whatever_happens(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_switches, "REFRESH", 0.001)
    here, there = world.process(), world.process()
    await there.start()
    try:
        await here.throw("town", on=False, by="admin")
        async with asyncio.timeout(60):
            await there.went_off("town").wait()
            for trouble in (Retryable("away"), RuntimeError("unforeseen")):
                looked, world.store.error = world.store.reads, trouble
                while world.store.reads < looked + 2:  # noqa: ASYNC110  # nothing tells when a look is over
                    await asyncio.sleep(0.001)
                assert there.off("town")
            world.store.error = None
            world.now += timedelta(seconds=1)
            await here.throw("town", on=True, by="admin")
            while there.off("town"):  # noqa: ASYNC110
                await asyncio.sleep(0.001)
    finally:
        await there.aclose()


async def test_all_follow_within_ten_seconds() -> None:
    assert chat_switches.REFRESH + chat_switches.LOOK_TIMEOUT < 10


async def test_what_was_known_last_counts_while_the_store_is_away(world: World) -> None:
    process = world.process()
    await process.throw("town", on=False, by="admin")
    world.store.error = Retryable("Elasticsearch does not answer")
    assert not await process.look()
    assert process.off("town")
    with pytest.raises(Retryable):
        await process.throw("town", on=True, by="admin")
    assert process.off("town")


async def test_only_a_failure_that_lasts_is_a_warning(world: World) -> None:
    process = world.process()
    with capture_logs() as logged:
        for error in (Retryable("away"), None, Retryable("away"), Retryable("away")):
            world.store.error = error
            assert await process.look() == (error is None)
    assert [line["log_level"] for line in logged] == ["info", "info", "warning"]


async def test_a_look_that_began_before_brings_nothing_back(world: World) -> None:
    process = world.process()
    await process.throw("town", on=True, by="admin")
    before = dict(world.store.kept)
    world.now += timedelta(seconds=1)
    await process.throw("town", on=False, by="admin")
    world.store.kept = before
    await process.look()
    assert process.off("town")


async def test_the_file_has_the_last_word(world: World) -> None:
    process = world.process(town=False, other=True)
    assert (process.state("town").on, process.state("town").by, process.off("other")) == (False, "file", False)
    with pytest.raises(ChatOffInFile):
        await process.throw("town", on=True, by="admin")
    assert world.store.kept == {}
    await process.throw("town", on=False, by="admin")
    assert process.state("town").by == "file"


async def test_a_site_is_forgotten_when_nothing_of_it_is_under_way(world: World) -> None:
    here = world.process()
    under_way = here.went_off("town")
    for number in range(100):
        here.went_off(f"site-{number}")
    assert list(here._off) == ["town"]
    await here.throw("town", on=False, by="admin")
    await here.throw("village", on=False, by="admin")
    assert under_way.is_set()
    assert here.went_off("village").is_set()  # it was off before anybody asked
