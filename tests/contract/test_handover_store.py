"""Messages to a person: what is relied on, the same in the real Elasticsearch and in their in-memory sibling."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest

from adapters.elastic.bundle import Elastic
from adapters.elastic.conversations import ElasticHandovers
from pipelines.conversations.handovers import HandoverChanged, HandoverStore, VersionedHandover
from pipelines.conversations.turns import ConversationOwner
from schemas.handover import Handover, StoredHandover
from tests.asking import NOON
from tests.engine_fixture import Servers
from tests.fakes.stores import FakeHandovers
from wiring.settings import Settings


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.engine)])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[HandoverStore]:
    if request.param == "fake":
        yield FakeHandovers()
        return
    engine: Servers = request.getfixturevalue("engine")
    async with Elastic(engine.elasticsearch, Settings()) as elastic:
        yield ElasticHandovers(elastic.es, elastic.indexes)


@pytest.fixture
def owner() -> ConversationOwner:
    """Nobody else's on servers that are everybody's."""
    return ConversationOwner(f"t{uuid4().hex[:10]}", "visitor:v1")


def message(
    owner: ConversationOwner, reference: str, minutes: int = 0, conversation: str | None = None
) -> StoredHandover:
    at = NOON + timedelta(minutes=minutes)
    handover = Handover(
        reference=reference, site=owner.site, at=at, lang="en", name="", reply_to="me@example.org", message="Call me.",
        conversation=(),
    )  # fmt: skip
    return StoredHandover(
        handover=handover, state="waiting", next_at=at, owner=owner.name, conversation_id=conversation
    )


async def test_a_message_is_kept_once_and_changed_by_one_at_a_time(
    store: HandoverStore, owner: ConversationOwner
) -> None:
    assert await store.get(owner.site, "AAAA-0001") is None
    stored = message(owner, "AAAA-0001")
    await store.put(VersionedHandover(stored))
    with pytest.raises(HandoverChanged):
        await store.put(VersionedHandover(stored))
    kept = await store.get(owner.site, "AAAA-0001")
    assert kept is not None
    assert kept.stored == stored
    done = stored.model_copy(update={"state": "delivered", "next_at": None})
    await store.put(replace(kept, stored=done))
    with pytest.raises(HandoverChanged):
        await store.put(replace(kept, stored=done))
    assert await store.delete(owner.site, "AAAA-0001")
    assert not await store.delete(owner.site, "AAAA-0001")


async def test_the_longest_due_one_of_each_site_comes_first_and_lists_come_in_pages(
    store: HandoverStore, owner: ConversationOwner
) -> None:
    other = ConversationOwner(f"{owner.site}b", owner.name)
    for n, minutes in enumerate((5, 1, 3, 90)):
        await store.put(VersionedHandover(message(owner, f"AAAA-000{n}", minutes)))
    await store.put(VersionedHandover(message(other, "BBBB-0000", 2)))
    ours = {owner.site, other.site}
    due = [each.stored.handover for each in await store.due(NOON + timedelta(minutes=10), 1_000)]
    found = [(each.site, each.reference) for each in due if each.site in ours]
    assert found == [(owner.site, "AAAA-0001"), (other.site, "BBBB-0000")]
    first, more = await store.of_site(owner.site, "waiting", 3)
    rest, end = await store.of_site(owner.site, None, 3, more)
    assert [each.handover.reference for each in (*first, *rest)] == ["AAAA-0003", "AAAA-0000", "AAAA-0002", "AAAA-0001"]
    assert end is None
    assert await store.of_site(owner.site, "failed", 3) == ([], None)


async def test_messages_are_erased_with_their_conversation_or_owner_and_expire(
    store: HandoverStore, owner: ConversationOwner
) -> None:
    somebody = ConversationOwner(owner.site, "visitor:v2")
    await store.put(VersionedHandover(message(owner, "AAAA-0001", 0, "conversation-1")))
    await store.put(VersionedHandover(message(owner, "AAAA-0002", 1)))
    await store.put(VersionedHandover(message(somebody, "AAAA-0003", 2)))
    await store.put(VersionedHandover(message(somebody, "AAAA-0004", 90)))
    assert await store.erase(owner, "conversation-1") == 1
    assert await store.get(owner.site, "AAAA-0001") is None
    assert await store.erase(owner) == 1
    assert dict(await store.expire({owner.site: NOON + timedelta(minutes=30)})) == {owner.site: 1}
    left, _ = await store.of_site(owner.site, None, 10)
    assert [each.handover.reference for each in left] == ["AAAA-0004"]
