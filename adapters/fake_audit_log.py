"""In-memory sibling of adapters.elastic.audit_log."""

from __future__ import annotations

from datetime import datetime

from schemas.audit_log import AuditEntry, AuditFilter, AuditLogPage


class FakeAuditLog:
    """Keeps entries in memory. Every call raises `error`, where it is set."""

    def __init__(self) -> None:
        self.kept: list[AuditEntry] = []
        self.error: Exception | None = None

    async def put(self, entry: AuditEntry) -> None:
        if self.error is not None:
            raise self.error
        self.kept.append(entry)

    async def find(self, wanted: AuditFilter, limit: int, after: str | None = None) -> AuditLogPage:
        if self.error is not None:
            raise self.error
        newest = sorted(self.kept, key=lambda entry: entry.id, reverse=True)
        found = [entry for entry in newest if wanted.fits(entry) and (after is None or entry.id < after)]
        return AuditLogPage(entries=tuple(found[:limit]), next=found[limit - 1].id if len(found) > limit else None)

    async def expire(self, before: datetime) -> int:
        old = [entry for entry in self.kept if entry.at < before]
        self.kept = [entry for entry in self.kept if entry.at >= before]
        return len(old)
