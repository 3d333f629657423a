"""Audit and repair over HTTP: does the index hold what the change log says?"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request

from gateway.edge.auth import Caller
from gateway.edge.bodies import parse, read_body
from gateway.edge.edge import Edge, MayAdmin, TheEdge
from gateway.edge.openapi import request_body
from pipelines.operate.audit.audit import SETTLE
from pipelines.operate.audit.report import AuditReport, RepairOrder, RepairReport
from pipelines.operate.audit.runs import AuditOrder, AuditRun, LastRun
from schemas.audit_log import Via

MAX_ORDER = 1_000  # bytes
MAX_SETTLE = 600.0  # seconds

router = APIRouter(prefix="/v1/admin", tags=["operations"])


@router.get("/sites/{site}/audit")
async def audit(
    caller: MayAdmin,
    edge: TheEdge,
    site: str,
    index: Annotated[str | None, Query(description="Default: the live one.")] = None,
    settle: Annotated[float, Query(ge=0, le=MAX_SETTLE, description="Seconds to wait for what is under way.")] = SETTLE,
) -> AuditReport:
    """Compare an index of the site with the change log. 100,000 chunks take some ten seconds; 409 while one runs."""
    return await edge.ports.audits.audit(site, index=index, settle=settle)


@router.post("/sites/{site}/audit", openapi_extra=request_body(RepairOrder))
async def repair(caller: MayAdmin, edge: TheEdge, site: str, request: Request) -> RepairReport:
    """Audit the live index, repair it from the log, and audit again; 409 while one runs or when the log may be lost."""
    order = parse(RepairOrder, await read_body(request, MAX_ORDER))
    async with edge.act(caller, "index.repair", site, "force" if order.force else ""):
        return await edge.ports.audits.repair(site, force=order.force)


@router.get("/sites/{site}/audit-run")
async def show_audit_run(caller: MayAdmin, edge: TheEdge, site: str) -> LastRun:
    """The audit or repair that is at work, or the last one, whichever gateway it was begun at."""
    return await last_run(edge, site)


@router.post("/sites/{site}/audit-run", status_code=202, openapi_extra=request_body(AuditOrder))
async def start_audit_run(caller: MayAdmin, edge: TheEdge, site: str, request: Request) -> LastRun:
    """Begin an audit of the live index, or with `repair` a repair, and do not wait for it; 409 while one is at work."""
    order = parse(AuditOrder, await read_body(request, MAX_ORDER))
    return LastRun(state="running", run=await begun(edge, caller, site, order))


async def last_run(edge: Edge, site: str) -> LastRun:
    """Raises: Retryable."""
    run = await edge.ports.audit_runs.last(site)
    return LastRun(state=run.state(edge.ports.now()) if run else None, run=run)


async def begun(edge: Edge, caller: Caller, site: str, order: AuditOrder, via: Via = "http") -> AuditRun:
    """Begin; a repair is noted in the audit log. Raises: AuditRunning, Retryable."""
    if not order.repair:
        return await edge.ports.audit_runs.start(site, order, caller.name)
    async with edge.act(caller, "index.repair", site, "force" if order.force else "", via):
        return await edge.ports.audit_runs.start(site, order, caller.name)
