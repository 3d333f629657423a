"""Visitors' conversations: one document each, in one index for all sites."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from hashlib import blake2b
from typing import Any

from elasticsearch import AsyncElasticsearch, ConflictError, NotFoundError

from adapters.elastic.client import explained
from adapters.elastic.expiry import expire, older
from adapters.elastic.indexes import CONVERSATIONS, ElasticIndexes
from pipelines.conversations.conversations import ConversationChanged, VersionedConversation
from pipelines.conversations.turns import ConversationOwner, summary
from schemas.conversation import Conversation, ConversationSummary


class ElasticConversations:
    """`pagewire.conversations`, a pipelines.conversations.conversations.ConversationStore. One per process."""

    def __init__(self, es: AsyncElasticsearch, indexes: ElasticIndexes) -> None:
        self._es = es
        self._indexes = indexes
        self._there = False

    async def get(self, owner: ConversationOwner, conversation_id: str) -> VersionedConversation | None:
        """The newest version, read in real time. Raises: ElasticsearchDown."""
        with explained("reading a conversation"):
            try:
                found = await self._es.get(index=CONVERSATIONS, id=_id(owner, conversation_id))
            except NotFoundError:
                return None
        return _kept(found.body)

    async def of_answer(self, owner: ConversationOwner, request_id: str) -> VersionedConversation | None:
        """Raises: ElasticsearchDown."""
        return await self._with(_of(owner, {"term": {"requests": request_id}}))

    async def with_answer(self, site: str, request_id: str) -> VersionedConversation | None:
        """Raises: ElasticsearchDown."""
        return await self._with({"bool": {"filter": [{"term": {"site": site}}, {"term": {"requests": request_id}}]}})

    async def _with(self, query: dict[str, Any]) -> VersionedConversation | None:
        with explained("looking for an answer's conversation"):
            try:
                hits = await self._search(query)
                if not hits:  # written in the last second, or unknown
                    await self._es.indices.refresh(index=CONVERSATIONS)
                    hits = await self._search(query)
            except NotFoundError:
                return None
        return _kept(hits[0]) if hits else None

    async def _search(self, query: dict[str, Any]) -> list[dict[str, Any]]:
        answer = await self._es.search(index=CONVERSATIONS, query=query, size=1, seq_no_primary_term=True)
        hits: list[dict[str, Any]] = answer["hits"]["hits"]
        return hits

    async def put(self, kept: VersionedConversation, *, at_once: bool = False) -> VersionedConversation:
        """Raises: ConversationChanged, ElasticsearchDown."""
        if not self._there:
            await self._indexes.ensure_system(CONVERSATIONS)
            self._there = True
        conversation = kept.conversation
        place: dict[str, Any] = {"op_type": "create"}
        if kept.version is not None:
            place = dict(zip(("if_seq_no", "if_primary_term"), kept.version, strict=True))
        with explained("keeping a conversation"):
            try:
                done = await self._es.index(
                    index=CONVERSATIONS,
                    id=_id(ConversationOwner(conversation.site, conversation.owner), conversation.conversation_id),
                    document=_document(conversation),
                    refresh=at_once,
                    **place,
                )
            except ConflictError as err:
                raise ConversationChanged("somebody else has written this conversation meanwhile") from err
        return VersionedConversation(conversation, (done["_seq_no"], done["_primary_term"]))

    async def delete(self, owner: ConversationOwner, conversation_id: str) -> bool:
        """Raises: ElasticsearchDown."""
        with explained("deleting a conversation"):
            try:
                await self._es.delete(index=CONVERSATIONS, id=_id(owner, conversation_id), refresh=True)
            except NotFoundError:
                return False
        return True

    async def list(self, owner: ConversationOwner, limit: int) -> list[ConversationSummary]:
        """Raises: ElasticsearchDown."""
        with explained("listing conversations"):
            try:
                answer = await self._es.search(
                    index=CONVERSATIONS,
                    query=_of(owner),
                    sort=[{"updated": "desc"}],
                    size=limit,
                    source_includes=["summary"],
                )
            except NotFoundError:
                return []
        return [ConversationSummary.stored(hit["_source"]["summary"]) for hit in answer["hits"]["hits"]]

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
    return VersionedConversation(conversation, (found["_seq_no"], found["_primary_term"]))
