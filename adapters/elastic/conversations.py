"""Visitors' conversations: one document each, in one index for all sites."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from hashlib import blake2b
from typing import Any

from adapters.elastic.client import explained
from adapters.elastic.expiry import expire, older
from adapters.elastic.indexes import CONVERSATIONS
from adapters.elastic.system_index import SystemIndex, version_of
from pipelines.conversations.conversations import ConversationChanged, VersionedConversation
from pipelines.conversations.turns import ConversationOwner, summary
from schemas.conversation import Conversation, ConversationSummary


class ElasticConversations(SystemIndex):
    """A pipelines.conversations.conversations.ConversationStore."""

    index = CONVERSATIONS

    async def get(self, owner: ConversationOwner, conversation_id: str) -> VersionedConversation | None:
        """The newest version, read in real time. Raises: ElasticsearchDown."""
        found = await self._get("reading a conversation", _id(owner, conversation_id))
        return _kept(found) if found else None

    async def of_answer(self, owner: ConversationOwner, request_id: str) -> VersionedConversation | None:
        """Raises: ElasticsearchDown."""
        return await self._with(_of(owner, {"term": {"requests": request_id}}))

    async def with_answer(self, site: str, request_id: str) -> VersionedConversation | None:
        """Raises: ElasticsearchDown."""
        return await self._with({"bool": {"filter": [{"term": {"site": site}}, {"term": {"requests": request_id}}]}})

    async def _with(self, query: dict[str, Any]) -> VersionedConversation | None:
        search = partial(
            self._hits, "looking for an answer's conversation", query=query, size=1, seq_no_primary_term=True
        )
        hits = await search()
        if not hits:  # written in the last second, or unknown
            with explained("refreshing the conversations"):
                await self._es.indices.refresh(index=CONVERSATIONS, ignore_unavailable=True)
            hits = await search()
        return _kept(hits[0]) if hits else None

    async def put(self, kept: VersionedConversation, *, at_once: bool = False) -> VersionedConversation:
        """Raises: ConversationChanged, ElasticsearchDown."""
        conversation = kept.conversation
        id = _id(ConversationOwner(conversation.site, conversation.owner), conversation.conversation_id)
        document = _document(conversation)
        version = await self._replace("keeping a conversation", id, document, kept.version, refresh=at_once)
        if version is None:
            raise ConversationChanged("somebody else has written this conversation meanwhile")
        return VersionedConversation(conversation, version)

    async def delete(self, owner: ConversationOwner, conversation_id: str) -> bool:
        """Raises: ElasticsearchDown."""
        return await self._delete("deleting a conversation", _id(owner, conversation_id))

    async def list(self, owner: ConversationOwner, limit: int) -> list[ConversationSummary]:
        """Raises: ElasticsearchDown."""
        hits = await self._hits(
            "listing conversations",
            query=_of(owner),
            sort=[{"updated": "desc"}],
            size=limit,
            source_includes=["summary"],
        )
        return [ConversationSummary.stored(hit["_source"]["summary"]) for hit in hits]

    async def expire(self, before: Mapping[str, datetime]) -> Mapping[str, int]:
        """Delete conversations whose last question was before. Returns numbers by site. Raises: ElasticsearchDown."""
        return await expire(self._es, CONVERSATIONS, older("updated", before))


def _id(owner: ConversationOwner, conversation_id: str) -> str:
    """The document's id. It contains the owner, so that another owner with the same conversation id finds nothing."""
    return blake2b(json.dumps([owner.site, owner.name, conversation_id]).encode(), digest_size=24).hexdigest()


def _of(owner: ConversationOwner, *more: dict[str, Any]) -> dict[str, Any]:
    return {"bool": {"filter": [{"term": {"site": owner.site}}, {"term": {"owner": owner.name}}, *more]}}


def _document(conversation: Conversation) -> dict[str, Any]:
    return {
        "site": conversation.site,
        "owner": conversation.owner,
        "updated": conversation.updated_at.isoformat(),
        "requests": [turn.request_id for turn in conversation.turns],
        "summary": summary(conversation).dumped(),
        "conversation": conversation.dumped(),
    }


def _kept(found: dict[str, Any]) -> VersionedConversation:
    conversation = Conversation.stored(found["_source"]["conversation"])
    return VersionedConversation(conversation, version_of(found))
