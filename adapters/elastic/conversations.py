"""Visitors' conversations and their messages to a person: one document each, in an index for all sites."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from hashlib import blake2b
from typing import Any

from adapters.elastic.client import explained
from adapters.elastic.expiry import expire, older
from adapters.elastic.indexes import CONVERSATIONS, HANDOVERS
from adapters.elastic.system_index import SystemIndex, version_of
from pipelines.conversations.conversations import ConversationChanged, VersionedConversation
from pipelines.conversations.handovers import HandoverChanged, VersionedHandover
from pipelines.conversations.turns import ConversationOwner, summary
from schemas.conversation import Conversation, ConversationSummary
from schemas.handover import HandoverState, StoredHandover


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


LOOKING = "looking for messages to a person"


class ElasticHandovers(SystemIndex):
    """A pipelines.conversations.handovers.HandoverStore."""

    index = HANDOVERS

    async def put(self, kept: VersionedHandover) -> VersionedHandover:
        """Raises: HandoverChanged, ElasticsearchDown."""
        stored = kept.stored
        id = _handover_id(stored.handover.site, stored.handover.reference)
        version = await self._replace("keeping a message to a person", id, _handover_document(stored), kept.version)
        if version is None:
            raise HandoverChanged("somebody else has written this message meanwhile")
        return VersionedHandover(stored, version)

    async def get(self, site: str, reference: str) -> VersionedHandover | None:
        """Raises: ElasticsearchDown."""
        found = await self._get("reading a message to a person", _handover_id(site, reference))
        return _kept_handover(found) if found else None

    async def due(self, now: datetime, limit: int) -> Sequence[VersionedHandover]:
        """Raises: ElasticsearchDown."""
        query = {"bool": {"filter": [{"term": {"state": "waiting"}}, {"range": {"next_at": {"lte": now.isoformat()}}}]}}
        hits = await self._hits(
            LOOKING,
            query=query,
            size=limit,
            sort=[{"next_at": "asc"}],
            seq_no_primary_term=True,
            collapse={"field": "site"},
        )
        return [_kept_handover(hit) for hit in hits]

    async def of_site(
        self, site: str, state: HandoverState | None, limit: int, after: str | None = None
    ) -> tuple[Sequence[StoredHandover], str | None]:
        """Raises: ElasticsearchDown."""
        filters: list[dict[str, Any]] = [{"term": {"site": site}}, *([{"term": {"state": state}}] if state else [])]
        hits = await self._hits(
            LOOKING,
            query={"bool": {"filter": filters}},
            size=limit + 1,  # one more, to know whether there is a next page
            sort=[{"place": "desc"}],
            search_after=[after] if after else None,
        )
        next = hits[limit - 1]["_source"]["place"] if len(hits) > limit else None
        return [_kept_handover(hit).stored for hit in hits[:limit]], next

    async def delete(self, site: str, reference: str) -> bool:
        """Raises: ElasticsearchDown."""
        return await self._delete("deleting a message to a person", _handover_id(site, reference))

    async def erase(self, owner: ConversationOwner, conversation_id: str | None = None) -> int:
        """Raises: ElasticsearchDown."""
        filters = [{"term": {"site": owner.site}}, {"term": {"owner": owner.name}}]
        if conversation_id is not None:
            filters.append({"term": {"conversation": conversation_id}})
        return (await expire(self._es, HANDOVERS, {"bool": {"filter": filters}})).total()

    async def expire(self, before: Mapping[str, datetime]) -> Mapping[str, int]:
        """Raises: ElasticsearchDown."""
        return await expire(self._es, HANDOVERS, older("at", before))


def _handover_id(site: str, reference: str) -> str:
    return f"{site}:{reference}"


def _handover_document(stored: StoredHandover) -> dict[str, Any]:
    return {
        "site": stored.handover.site,
        "owner": stored.owner,
        "conversation": stored.conversation_id,
        "at": stored.handover.at.isoformat(),
        "state": stored.state,
        "next_at": stored.next_at.isoformat() if stored.next_at else None,
        "place": f"{stored.handover.at.isoformat()}/{stored.handover.reference}",
        "handover": stored.dumped(),
    }


def _kept_handover(found: dict[str, Any]) -> VersionedHandover:
    stored = StoredHandover.stored(found["_source"]["handover"])
    return VersionedHandover(stored, version_of(found) if "_seq_no" in found else None)
