"""The audit log over HTTP: who changed what, and when."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import AwareDatetime, ValidationError

from gateway.edge.edge import MayAdmin, TheEdge
from gateway.edge.problems import invalid
from schemas.audit_log import AuditFilter, AuditLogPage, EntryId

MAX_LISTED = 1_000

router = APIRouter(prefix="/v1/admin", tags=["operations"])


async def query_filter(
    since: Annotated[AwareDatetime | None, Query(alias="from", description="Done then or later.")] = None,
    until: Annotated[AwareDatetime | None, Query(alias="to", description="Done before.")] = None,
    who: Annotated[str | None, Query(description="Name of the key, `visitor`, or a machine's user.")] = None,
    action: Annotated[str | None, Query(description="For example `keys.revoke`.")] = None,
    site: str | None = None,
) -> AuditFilter:
    """The filter from the query string."""
    try:
        return AuditFilter(since=since, until=until, who=who, action=action, site=site)
    except ValidationError as err:
        raise invalid(err.errors(include_input=False, include_url=False)) from None


@router.get("/audit-log")
async def audit_log(
    caller: MayAdmin,
    edge: TheEdge,
    wanted: Annotated[AuditFilter, Depends(query_filter)],
    limit: Annotated[int, Query(ge=1, le=MAX_LISTED)] = 100,
    after: Annotated[EntryId | None, Query(description="`next` of the list before.")] = None,
) -> AuditLogPage:
    """Who changed what, when and with what outcome: keys, dead letters, examples, rebuilds, repairs, erasures; the
    newest first. An entry is listed within two seconds."""
    return await edge.ports.audit_log.find(wanted, limit, after)
