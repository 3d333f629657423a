"""Rebuilds over HTTP, for the console and for scripts."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from fastapi.responses import JSONResponse

from gateway.edge.bodies import parse, read_body
from gateway.edge.edge import MayAdmin, TheEdge
from gateway.edge.openapi import request_body
from schemas.rebuild import Generation, RebuildList, RebuildOrder

MAX_ORDER = 10_000  # bytes

router = APIRouter(prefix="/v1/admin/sites/{site}", tags=["operations"])

Number = Annotated[int, Path(ge=1)]
GENERATION = "/rebuilds/{generation}"
LIVE: dict[int | str, dict[str, Any]] = {202: {"description": "It is being brought up to date; look at the list."}}


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
    """Begin a rebuild in a process of its own, or go on with one that was stopped. It ends with the gateway."""
    order = parse(RebuildOrder, await read_body(request, MAX_ORDER))
    async with edge.act(caller, "rebuild.start", site) as act:
        begun = await edge.ports.rebuilds.start(site, order)
        act.target = begun.index
    return begun


@router.post("/rebuilds:stop", status_code=202)
async def stop_rebuild(site: str, caller: MayAdmin, edge: TheEdge) -> RebuildList:
    """Stop what is at work on the indexes, wherever it was begun: within ten seconds. The same order goes on there."""
    async with edge.act(caller, "rebuild.stop", site):
        await edge.ports.rebuilds.stop(site, caller.name)
    return await edge.ports.rebuilds.list(site)


@router.post(GENERATION + "/promote", response_model=Generation, responses=LIVE)
async def promote_rebuild(site: str, generation: Number, caller: MayAdmin, edge: TheEdge) -> Response:
    """Make a verified generation live; the answer is what is live then."""
    async with edge.act(caller, "rebuild.promote", site, str(generation)):
        return _live(await edge.ports.rebuilds.promote(site, generation))


@router.post("/rebuilds:rollback", response_model=Generation, responses=LIVE)
async def roll_back(site: str, caller: MayAdmin, edge: TheEdge) -> Response:
    """Make the previous generation live again; the answer is what is live then."""
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
