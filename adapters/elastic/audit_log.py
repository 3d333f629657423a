"""The audit log: a document per action, in one index for all sites. Entries are never changed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from adapters.elastic.expiry import expire
from adapters.elastic.indexes import AUDIT_LOG
from adapters.elastic.system_index import SystemIndex
from schemas.audit_log import AuditEntry, AuditFilter, AuditLogPage


class ElasticAuditLog(SystemIndex):
    """A pipelines.operate.audit_log.AuditStore."""

    index = AUDIT_LOG

    async def put(self, entry: AuditEntry) -> None:
        """Readers see the entry within a second. Raises: ElasticsearchDown."""
        searched = entry.model_dump(mode="json", include={"id", "at", "who", "action", "site"})
        document = searched | {"entry": entry.dumped()}
        await self._write("writing the audit log", entry.id, document, refresh=False, op_type="create")

    async def find(self, wanted: AuditFilter, limit: int, after: str | None = None) -> AuditLogPage:
        """The newest first. Raises: ElasticsearchDown."""
        hits = await self._hits(
            "reading the audit log",
            query=_query(wanted),
            sort=[{"id": "desc"}],
            size=limit + 1,  # one more, to know whether there is a next page
            search_after=[after] if after else None,
        )
        entries = [AuditEntry.stored(hit["_source"]["entry"]) for hit in hits]
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
