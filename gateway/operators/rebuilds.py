"""Rebuilds of a site's index, and audits of it against the change log, over HTTP."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import JSONResponse

from gateway.edge.auth import Caller
from gateway.edge.bodies import parse, read_body
from gateway.edge.edge import Edge, MayAdmin, TheEdge
from gateway.edge.openapi import request_body
from pipelines.operate.audit.audit import SETTLE
from pipelines.operate.audit.repair import AuditOrder, AuditRun, LastRun
from pipelines.operate.audit.report import AuditReport, RepairOrder, RepairReport
from schemas.audit_log import Via
from schemas.rebuild import Generation, RebuildList, RebuildOrder

MAX_ORDER = 10_000  # bytes

router = APIRouter(prefix="/v1/admin/sites/{site}", tags=["operations"])

Number = Annotated[int, Path(ge=1)]
GENERATION = "/rebuilds/{generation}"
LIVE: dict[int | str, dict[str, Any]] = {202: {"description": "It is being brought up to date; look at the list."}}
MAX_SETTLE = 600.0  # seconds


@router.get("/rebuilds")
async def list_rebuilds(site: str, caller: MayAdmin, edge: TheEdge) -> RebuildList:
    """All generations of the site's index, with the progress of those being built."""
    return await edge.ports.rebuilds.list(site)


@router.get(GENERATION)
async def show_rebuild(site: str, generation: Number, caller: MayAdmin, edge: TheEdge) -> Generation:
    """One generation."""
    return await edge.ports.rebuilds.get(site, generation)


@router.post("/rebuilds", status_code=202, openapi_extra=request_body(RebuildOrder))
async def start_rebuild(site: str, caller: MayAdmin, edge: TheEdge, request: Request) -> Generation:
    """Start a rebuild in a process of its own, or continue a stopped one. It ends with the gateway."""
    order = parse(RebuildOrder, await read_body(request, MAX_ORDER))
    async with edge.act(caller, "rebuild.start", site) as act:
        begun = await edge.ports.rebuilds.start(site, order)
        act.target = begun.index
    return begun


@router.post("/rebuilds:stop", status_code=202)
async def stop_rebuild(site: str, caller: MayAdmin, edge: TheEdge) -> RebuildList:
    """Stop the site's running rebuild, at any gateway, within ten seconds. The same order continues it."""
    async with edge.act(caller, "rebuild.stop", site):
        await edge.ports.rebuilds.stop(site, caller.name)
    return await edge.ports.rebuilds.list(site)


@router.post(GENERATION + "/promote", response_model=Generation, responses=LIVE)
async def promote_rebuild(site: str, generation: Number, caller: MayAdmin, edge: TheEdge) -> Response:
    """Make a verified generation live. Returns the live generation."""
    async with edge.act(caller, "rebuild.promote", site, str(generation)):
        return _live(await edge.ports.rebuilds.promote(site, generation))


@router.post("/rebuilds:rollback", response_model=Generation, responses=LIVE)
async def roll_back(site: str, caller: MayAdmin, edge: TheEdge) -> Response:
    """Make the previous generation live again. Returns the live generation."""
    async with edge.act(caller, "rebuild.rollback", site):
        return _live(await edge.ports.rebuilds.rollback(site))


@router.delete(GENERATION, status_code=204)
async def discard_rebuild(site: str, generation: Number, caller: MayAdmin, edge: TheEdge) -> None:
    """Delete a generation that is not live."""
    async with edge.act(caller, "rebuild.discard", site, str(generation)):
        await edge.ports.rebuilds.discard(site, generation)


def _live(generation: Generation | None) -> Response:
    if generation is None:
        return Response(status_code=202)
    return JSONResponse(generation.model_dump(mode="json"))


@router.get("/audit")
async def audit(
    caller: MayAdmin,
    edge: TheEdge,
    site: str,
    index: Annotated[str | None, Query(description="Default: the live one.")] = None,
    settle: Annotated[float, Query(ge=0, le=MAX_SETTLE, description="Seconds to wait for what is under way.")] = SETTLE,
) -> AuditReport:
    """Compare an index of the site with the change log. 100,000 chunks take some ten seconds; 409 while one runs."""
    return await edge.ports.audits.audit(site, index=index, settle=settle)


@router.post("/audit", openapi_extra=request_body(RepairOrder))
async def repair(caller: MayAdmin, edge: TheEdge, site: str, request: Request) -> RepairReport:
    """Audit the live index, repair it from the log, and audit again; 409 while one runs or when the log may be lost."""
    order = parse(RepairOrder, await read_body(request, MAX_ORDER))
    async with edge.act(caller, "index.repair", site, "force" if order.force else ""):
        return await edge.ports.audits.repair(site, force=order.force)


@router.get("/audit-run")
async def show_audit_run(caller: MayAdmin, edge: TheEdge, site: str) -> LastRun:
    """The running audit or repair, or the last one, started at any gateway."""
    return await last_run(edge, site)


@router.post("/audit-run", status_code=202, openapi_extra=request_body(AuditOrder))
async def start_audit_run(caller: MayAdmin, edge: TheEdge, site: str, request: Request) -> LastRun:
    """Start an audit of the live index, or with `repair` a repair, and do not wait for it; 409 while one is running."""
    order = parse(AuditOrder, await read_body(request, MAX_ORDER))
    return LastRun(state="running", run=await start_audit(edge, caller, site, order))


async def last_run(edge: Edge, site: str) -> LastRun:
    """Raises: Retryable."""
    run = await edge.ports.audit_runs.last(site)
    return LastRun(state=run.state(edge.ports.now()) if run else None, run=run)


async def start_audit(edge: Edge, caller: Caller, site: str, order: AuditOrder, via: Via = "http") -> AuditRun:
    """Start; a repair is noted in the audit log. Raises: AuditRunning, Retryable."""
    if not order.repair:
        return await edge.ports.audit_runs.start(site, order, caller.name)
    async with edge.act(caller, "index.repair", site, "force" if order.force else "", via):
        return await edge.ports.audit_runs.start(site, order, caller.name)
