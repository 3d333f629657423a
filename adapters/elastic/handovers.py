"""Visitors' messages to a person: one document each, in one index for all sites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from elasticsearch import AsyncElasticsearch, ConflictError, NotFoundError

from adapters.elastic.client import explained
from adapters.elastic.expiry import expire, older
from adapters.elastic.indexes import HANDOVERS, ElasticIndexes
from pipelines.conversations.handovers import HandoverChanged, VersionedHandover
from pipelines.conversations.turns import ConversationOwner
from schemas.handover import HandoverState, StoredHandover


class ElasticHandovers:
    """`pagewire.handovers`, a pipelines.conversations.handovers.HandoverStore. One per process."""

    def __init__(self, es: AsyncElasticsearch, indexes: ElasticIndexes) -> None:
        self._es = es
        self._indexes = indexes
        self._there = False

    async def put(self, kept: VersionedHandover) -> VersionedHandover:
        """Raises: HandoverChanged, ElasticsearchDown."""
        if not self._there:
            await self._indexes.ensure_system(HANDOVERS)
            self._there = True
        stored = kept.stored
        place: dict[str, Any] = {"op_type": "create"}
        if kept.version is not None:
            place = dict(zip(("if_seq_no", "if_primary_term"), kept.version, strict=True))
        with explained("keeping a message to a person"):
            try:
                done = await self._es.index(
                    index=HANDOVERS,
                    id=_id(stored.handover.site, stored.handover.reference),
                    document=_document(stored),
                    refresh=True,
                    **place,
                )
            except ConflictError as err:
                raise HandoverChanged("somebody else has written this message meanwhile") from err
        return VersionedHandover(stored, (done["_seq_no"], done["_primary_term"]))

    async def get(self, site: str, reference: str) -> VersionedHandover | None:
        """Raises: ElasticsearchDown."""
        with explained("reading a message to a person"):
            try:
                return _kept((await self._es.get(index=HANDOVERS, id=_id(site, reference))).body)
            except NotFoundError:
                return None

    async def due(self, now: datetime, limit: int) -> Sequence[VersionedHandover]:
        """Raises: ElasticsearchDown."""
        query = {"bool": {"filter": [{"term": {"state": "waiting"}}, {"range": {"next_at": {"lte": now.isoformat()}}}]}}
        hits = await self._search(
            query, size=limit, sort=[{"next_at": "asc"}], seq_no_primary_term=True, collapse={"field": "site"}
        )
        return [_kept(hit) for hit in hits]

    async def of_site(
        self, site: str, state: HandoverState | None, limit: int, after: str | None = None
    ) -> tuple[Sequence[StoredHandover], str | None]:
        """Raises: ElasticsearchDown."""
        filters: list[dict[str, Any]] = [{"term": {"site": site}}, *([{"term": {"state": state}}] if state else [])]
        hits = await self._search(
            {"bool": {"filter": filters}},
            size=limit + 1,  # one more, to know whether there is a next page
            sort=[{"place": "desc"}],
            **({"search_after": [after]} if after else {}),
        )
        next = hits[limit - 1]["_source"]["place"] if len(hits) > limit else None
        return [_kept(hit).stored for hit in hits[:limit]], next

    async def delete(self, site: str, reference: str) -> bool:
        """Raises: ElasticsearchDown."""
        with explained("deleting a message to a person"):
            try:
                await self._es.delete(index=HANDOVERS, id=_id(site, reference), refresh=True)
            except NotFoundError:
                return False
        return True

    async def erase(self, owner: ConversationOwner, conversation_id: str | None = None) -> int:
        """Raises: ElasticsearchDown."""
        filters = [{"term": {"site": owner.site}}, {"term": {"owner": owner.name}}]
        if conversation_id is not None:
            filters.append({"term": {"conversation": conversation_id}})
        return (await expire(self._es, HANDOVERS, {"bool": {"filter": filters}})).total()

    async def expire(self, before: Mapping[str, datetime]) -> Mapping[str, int]:
        """Raises: ElasticsearchDown."""
        return await expire(self._es, HANDOVERS, older("at", before))

    async def _search(self, query: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
        with explained("looking for messages to a person"):
            try:
                answer = await self._es.search(index=HANDOVERS, query=query, **more)
            except NotFoundError:  # there are none yet
                return []
        hits: list[dict[str, Any]] = answer["hits"]["hits"]
        return hits


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
    version = (found["_seq_no"], found["_primary_term"]) if "_seq_no" in found else None
    return VersionedHandover(stored, version)
