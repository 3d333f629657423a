"""What the edge relies on, the same for conversations in the real Elasticsearch and for their in-memory sibling."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest

from adapters.elastic.bundle import Elastic
from adapters.elastic.conversations import ElasticConversations
from pipelines.conversations.conversations import ConversationChanged, ConversationStore, VersionedConversation
from pipelines.conversations.turns import ConversationOwner, begun, changed_turn, continued
from schemas.query import Question
from tests.asking import NOON, question
from tests.engine_fixture import Servers
from tests.fakes.conversations import FakeConversations
from wiring.settings import Settings


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.engine)])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[ConversationStore]:
    if request.param == "fake":
        yield FakeConversations()
        return
    engine: Servers = request.getfixturevalue("engine")
    async with Elastic(engine.elasticsearch, Settings()) as elastic:
        yield ElasticConversations(elastic.es, elastic.indexes)


@pytest.fixture
def owner() -> ConversationOwner:
    """Nobody else's on servers that are everybody's."""
    return ConversationOwner(f"t{uuid4().hex[:10]}", "visitor:v1")


def asked(request_id: str, conversation_id: str = "conversation-1", minutes: int = 0) -> Question:
    at = NOON + timedelta(minutes=minutes)
    return question(f"Question of {request_id}?").model_copy(
        update={"request_id": request_id, "conversation_id": conversation_id, "asked_at": at}
    )


async def eventually(look: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not await look():  # type: ignore[misc]  # noqa: ASYNC110  # an index refreshes without telling
            await asyncio.sleep(0.05)


async def test_what_was_put_is_there_at_once_and_knows_its_version(
    store: ConversationStore, owner: ConversationOwner
) -> None:
    assert await store.get(owner, "conversation-1") is None
    conversation = begun(owner, asked("request-0001"), "3.4.1")
    await store.put(VersionedConversation(conversation))
    kept = await store.get(owner, "conversation-1")
    assert kept is not None
    assert kept.conversation == conversation
    assert kept.version is not None
    longer = continued(conversation, asked("request-0002"), "3.9.1")
    written = await store.put(replace(kept, conversation=longer))
    again = await store.get(owner, "conversation-1")
    assert again == written
    assert again.conversation == longer


async def test_only_one_of_two_writers_gets_through(store: ConversationStore, owner: ConversationOwner) -> None:
    conversation = begun(owner, asked("request-0001"), "3.4.1")
    await store.put(VersionedConversation(conversation))
    with pytest.raises(ConversationChanged):
        await store.put(VersionedConversation(conversation))
    kept = await store.get(owner, "conversation-1")
    assert kept is not None
    await store.put(replace(kept, conversation=continued(conversation, asked("request-0002"), "3.9.1")))
    with pytest.raises(ConversationChanged):
        await store.put(replace(kept, conversation=continued(conversation, asked("request-0003"), "3.9.1")))


async def test_a_conversation_that_was_deleted_is_not_written_any_more(
    store: ConversationStore, owner: ConversationOwner
) -> None:
    await store.put(VersionedConversation(begun(owner, asked("request-0001"), "3.4.1")))
    kept = await store.get(owner, "conversation-1")
    assert kept is not None
    assert await store.delete(owner, "conversation-1")
    assert not await store.delete(owner, "conversation-1")
    assert await store.get(owner, "conversation-1") is None
    with pytest.raises(ConversationChanged):
        await store.put(kept)


async def test_an_answer_leads_to_its_conversation_from_the_first_moment(
    store: ConversationStore, owner: ConversationOwner
) -> None:
    conversation = continued(begun(owner, asked("request-0001"), "3.4.1"), asked("request-0002"), "3.9.1")
    await store.put(VersionedConversation(conversation))
    for request_id in ("request-0001", "request-0002"):
        kept = await store.of_answer(owner, request_id)
        assert kept is not None
        assert kept.conversation == conversation
    assert await store.of_answer(owner, "request-9999") is None
    # What was read this way can be written.
    kept = await store.of_answer(owner, "request-0001")
    assert kept is not None
    await store.put(replace(kept, conversation=changed_turn(conversation, "request-0001", removed=True)))


async def test_an_owner_finds_their_own_alone(store: ConversationStore, owner: ConversationOwner) -> None:
    await store.put(VersionedConversation(begun(owner, asked("request-0001"), "3.4.1")), at_once=True)
    for stranger in (replace(owner, name="visitor:v2"), replace(owner, site=f"{owner.site}-x")):
        assert await store.get(stranger, "conversation-1") is None
        assert await store.of_answer(stranger, "request-0001") is None
        assert await store.list(stranger, 10) == []
        assert not await store.delete(stranger, "conversation-1")
        # The same id in other hands is another conversation.
        await store.put(VersionedConversation(begun(stranger, asked("request-0009"), "3.4.1")))
    kept = await store.get(owner, "conversation-1")
    assert kept is not None
    assert kept.conversation.turns[0].request_id == "request-0001"


async def test_the_list_has_the_newest_first_and_no_more_than_wanted(
    store: ConversationStore, owner: ConversationOwner
) -> None:
    for n in (2, 3, 1):
        await store.put(
            VersionedConversation(begun(owner, asked(f"request-000{n}", f"conversation-{n}", minutes=n), "3.4.1"))
        )

    async def all_there() -> bool:
        return len(await store.list(owner, 10)) == 3

    await eventually(all_there)
    newest = await store.list(owner, 2)
    assert [one.conversation_id for one in newest] == ["conversation-3", "conversation-2"]
    assert (newest[0].title, newest[0].turns) == ("Question of request-0003?", 1)


async def test_a_new_title_and_a_deletion_show_at_once(store: ConversationStore, owner: ConversationOwner) -> None:
    await store.put(VersionedConversation(begun(owner, asked("request-0001"), "3.4.1")))
    kept = await store.get(owner, "conversation-1")
    assert kept is not None
    renamed = kept.conversation.model_copy(update={"title": "Pool"})
    await store.put(replace(kept, conversation=renamed), at_once=True)
    assert [one.title for one in await store.list(owner, 10)] == ["Pool"]
    await store.delete(owner, "conversation-1")
    assert await store.list(owner, 10) == []


async def test_what_was_not_gone_on_with_for_long_expires(store: ConversationStore, owner: ConversationOwner) -> None:
    assert isinstance(store, FakeConversations | ElasticConversations)
    for minutes, name in ((0, "conversation-1"), (10, "conversation-2")):
        await store.put(VersionedConversation(begun(owner, asked(f"request-{minutes:04}", name, minutes), "3.4.1")))
    limit = NOON + timedelta(minutes=5)
    assert await store.expire({f"{owner.site}x": limit}) == {}
    assert await store.expire({owner.site: limit, "another": NOON}) == {owner.site: 1}
    assert await store.get(owner, "conversation-1") is None
    assert await store.get(owner, "conversation-2") is not None
