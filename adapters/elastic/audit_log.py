"""The audit log: a document per action, in one index for all sites. Entries are never changed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from elasticsearch import AsyncElasticsearch, NotFoundError

from adapters.elastic.client import explained
from adapters.elastic.expiry import expire
from adapters.elastic.indexes import AUDIT_LOG, ElasticIndexes
from schemas.audit_log import AuditEntry, AuditFilter, AuditLogPage


class ElasticAuditLog:
    """`pagewire.audit-log`, a pipelines.operate.audit_log.AuditStore. One per process."""

    def __init__(self, es: AsyncElasticsearch, indexes: ElasticIndexes) -> None:
        self._es = es
        self._indexes = indexes
        self._there = False

    async def put(self, entry: AuditEntry) -> None:
        """Readers see the entry within a second. Raises: ElasticsearchDown."""
        if not self._there:
            await self._indexes.ensure_system(AUDIT_LOG)
            self._there = True
        searched = entry.model_dump(mode="json", include={"id", "at", "who", "action", "site"})
        with explained("writing the audit log"):
            await self._es.create(index=AUDIT_LOG, id=entry.id, document=searched | {"entry": entry.dumped()})

    async def find(self, wanted: AuditFilter, limit: int, after: str | None = None) -> AuditLogPage:
        """The newest first. Raises: ElasticsearchDown."""
        with explained("reading the audit log"):
            try:
                answer = await self._es.search(
                    index=AUDIT_LOG,
                    query=_query(wanted),
                    sort=[{"id": "desc"}],
                    size=limit + 1,  # one more, to know whether there is a next page
                    search_after=[after] if after else None,
                )
            except NotFoundError:  # there are no entries yet
                return AuditLogPage(entries=())
        entries = [AuditEntry.stored(hit["_source"]["entry"]) for hit in answer["hits"]["hits"]]
        more = len(entries) > limit
        return AuditLogPage(entries=tuple(entries[:limit]), next=entries[limit - 1].id if more else None)

    async def expire(self, before: datetime) -> int:
        """Delete older entries. Returns their number. Raises: ElasticsearchDown."""
        return (await expire(self._es, AUDIT_LOG, {"range": {"at": {"lt": before.isoformat()}}})).total()


def _query(wanted: AuditFilter) -> dict[str, Any]:
    filters: list[dict[str, Any]] = [
        {"term": {name: value}} for name in ("who", "action", "site") if (value := getattr(wanted, name)) is not None
    ]
    period = {"gte": wanted.since, "lt": wanted.until}
    if limits := {name: at.isoformat() for name, at in period.items() if at is not None}:
        filters.append({"range": {"at": limits}})
    return {"bool": {"filter": filters}}
