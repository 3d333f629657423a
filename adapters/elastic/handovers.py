"""Visitors' messages to a person: one document each, in one index for all sites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from adapters.elastic.expiry import expire, older
from adapters.elastic.indexes import HANDOVERS
from adapters.elastic.system_index import SystemIndex, version_of
from pipelines.conversations.handovers import HandoverChanged, VersionedHandover
from pipelines.conversations.turns import ConversationOwner
from schemas.handover import HandoverState, StoredHandover

LOOKING = "looking for messages to a person"


class ElasticHandovers(SystemIndex):
    """A pipelines.conversations.handovers.HandoverStore."""

    index = HANDOVERS

    async def put(self, kept: VersionedHandover) -> VersionedHandover:
        """Raises: HandoverChanged, ElasticsearchDown."""
        stored = kept.stored
        id = _id(stored.handover.site, stored.handover.reference)
        version = await self._replace("keeping a message to a person", id, _document(stored), kept.version)
        if version is None:
            raise HandoverChanged("somebody else has written this message meanwhile")
        return VersionedHandover(stored, version)

    async def get(self, site: str, reference: str) -> VersionedHandover | None:
        """Raises: ElasticsearchDown."""
        found = await self._get("reading a message to a person", _id(site, reference))
        return _kept(found) if found else None

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
        return [_kept(hit) for hit in hits]

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
        return [_kept(hit).stored for hit in hits[:limit]], next

    async def delete(self, site: str, reference: str) -> bool:
        """Raises: ElasticsearchDown."""
        return await self._delete("deleting a message to a person", _id(site, reference))

    async def erase(self, owner: ConversationOwner, conversation_id: str | None = None) -> int:
        """Raises: ElasticsearchDown."""
        filters = [{"term": {"site": owner.site}}, {"term": {"owner": owner.name}}]
        if conversation_id is not None:
            filters.append({"term": {"conversation": conversation_id}})
        return (await expire(self._es, HANDOVERS, {"bool": {"filter": filters}})).total()

    async def expire(self, before: Mapping[str, datetime]) -> Mapping[str, int]:
        """Raises: ElasticsearchDown."""
        return await expire(self._es, HANDOVERS, older("at", before))


def _id(site: str, reference: str) -> str:
    return f"{site}:{reference}"


def _document(stored: StoredHandover) -> dict[str, Any]:
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


def _kept(found: dict[str, Any]) -> VersionedHandover:
    stored = StoredHandover.stored(found["_source"]["handover"])
    return VersionedHandover(stored, version_of(found) if "_seq_no" in found else None)
