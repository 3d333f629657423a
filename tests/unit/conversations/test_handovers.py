"""A visitor's message to a person is kept first, and delivered until it is given up visibly."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from adapters.elastic.client import ElasticsearchDown
from pipelines.conversations.handovers import GIVE_UP, LEASE, Deliveries, Handovers, NotWaiting, UnknownHandover
from pipelines.conversations.turns import ConversationOwner
from pipelines.runtime.errors import Permanent, Retryable
from schemas.handover import Handover, HandoverOrder, StoredHandover
from tests.fakes.stores import FakeHandovers

OWNER = ConversationOwner("town", "visitor:1", ())
ORDER = HandoverOrder(reply_to="eva@town.example", message="My bin was not emptied.")


async def settled(*workers: Deliveries) -> None:
    await asyncio.gather(*(task for each in workers for task in each._busy.values()))


class World:
    """A clock, a store, and receivers that fail as told."""

    def __init__(self) -> None:
        self.at = datetime(2026, 7, 1, 12, tzinfo=UTC)
        self.store = FakeHandovers()
        self.handovers = Handovers(self.store, lambda: self.at)
        self.got: list[str] = []
        self.failure: Exception | None = None
        self.gate: dict[str, asyncio.Event] = {}
        self.deliveries = self.worker()

    def worker(self) -> Deliveries:
        return Deliveries(self.store, {"town": self.deliver, "other": self.deliver}, self._now, lambda site: site)

    async def _now(self) -> datetime:
        return self.at

    async def deliver(self, handover: Handover) -> None:
        if handover.site in self.gate:
            await self.gate[handover.site].wait()
        if self.failure is not None:
            raise self.failure
        self.got.append(handover.reference)

    async def take(self, owner: ConversationOwner = OWNER) -> str:
        return await self.handovers.take(owner, ORDER, "en", None)

    async def look(self) -> None:
        await self.deliveries.look()
        await settled(self.deliveries)

    def stored(self, reference: str, site: str = "town") -> StoredHandover:
        return self.store.kept[site, reference].stored


async def test_kept_then_delivered_once_by_many_workers() -> None:
    world = World()
    reference = await world.take()
    assert world.stored(reference).state == "waiting"
    other = world.worker()
    await asyncio.gather(world.deliveries.look(), other.look())
    await settled(world.deliveries, other)
    await world.look()
    assert world.got == [reference]
    assert world.stored(reference).state == "delivered"
    with pytest.raises(UnknownHandover):
        await world.handovers.redeliver("other", reference)


async def test_a_receiver_that_is_away_is_tried_later_and_later_then_given_up_and_can_be_tried_again() -> None:
    world = World()
    reference, came = await world.take(), world.at
    world.failure = Retryable("503 from the desk")
    pauses = []
    while (stored := world.stored(reference)).state == "waiting":
        assert stored.next_at is not None
        pauses.append((stored.next_at - world.at).total_seconds())
        world.at = stored.next_at
        await world.look()
    assert pauses[:4] == [0, 30, 60, 120]
    assert max(pauses) == 3600
    assert GIVE_UP <= world.at - came < GIVE_UP + timedelta(hours=1)
    assert (stored.state, stored.reason, stored.next_at) == ("failed", "503 from the desk", None)
    world.failure = None
    await world.handovers.redeliver("town", reference)
    with pytest.raises(NotWaiting):
        await world.handovers.redeliver("town", reference)
    await world.look()
    assert world.stored(reference).state == "delivered"


async def test_what_is_refused_is_given_up_at_once_with_the_reason() -> None:
    world = World()
    world.failure = Permanent("401 from the desk")
    reference = await world.take()
    await world.look()
    assert (world.stored(reference).state, world.stored(reference).reason) == ("failed", "401 from the desk")


async def test_what_cannot_be_sent_at_all_is_given_up_and_holds_nobody_up() -> None:
    world = World()
    broken, after = await world.take(), await world.take(ConversationOwner("other", "visitor:2", ()))
    world.failure = ValueError("no such header")
    await world.look()
    assert (world.stored(broken).state, world.stored(broken).reason) == ("failed", "ValueError: no such header")
    world.failure = None
    await world.handovers.redeliver("town", broken)
    await world.handovers.redeliver("other", after)
    await world.look()
    assert sorted(world.got) == sorted([broken, after])


async def test_a_receiver_that_hangs_delays_its_own_site_alone() -> None:
    world = World()
    world.gate["town"] = asyncio.Event()
    slow = await world.take()
    quick = await world.take(ConversationOwner("other", "visitor:2", ()))
    await world.deliveries.look()
    async with asyncio.timeout(5):
        while quick not in world.got:  # noqa: ASYNC110  # it tells nobody
            await asyncio.sleep(0)
    assert slow not in world.got
    world.gate["town"].set()
    await settled(world.deliveries)
    assert slow in world.got


async def test_a_worker_that_dies_while_it_sends_is_followed_by_another_after_the_lease() -> None:
    world = World()
    world.gate["town"] = asyncio.Event()
    reference = await world.take()
    await world.deliveries.look()
    await asyncio.sleep(0)
    await world.deliveries.aclose()
    assert world.stored(reference).state == "waiting"
    world.gate.clear()
    world.deliveries = world.worker()
    await world.look()
    assert world.got == []  # claimed by the dead one
    world.at += LEASE
    await world.look()
    assert world.got == [reference]


async def test_without_the_store_nothing_is_promised_and_no_worker_falls() -> None:
    world = World()
    world.store.error = ElasticsearchDown("away")
    with pytest.raises(ElasticsearchDown):
        await world.take()
    await world.look()
    assert world.got == []
