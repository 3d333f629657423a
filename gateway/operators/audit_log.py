"""The audit log over HTTP: who changed what, and when."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from gateway.edge.edge import MayAdmin, TheEdge
from schemas.audit_log import AuditLogPage, AuditLogQuery

router = APIRouter(prefix="/v1/admin", tags=["operations"])


@router.get("/audit-log")
async def audit_log(caller: MayAdmin, edge: TheEdge, wanted: Annotated[AuditLogQuery, Query()]) -> AuditLogPage:
    """Who changed what, when and with what outcome: keys, dead letters, examples, rebuilds, repairs, erasures; the
    newest first. An entry is listed within two seconds."""
    return await edge.ports.audit_log.find(wanted, wanted.limit, wanted.after)
