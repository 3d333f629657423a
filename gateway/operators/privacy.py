"""How long a site keeps its visitors' words, over HTTP: read, changed, and restored.

PUT, DELETE, restore ─▶ a new version ─▶ every worker and gateway, within ten seconds
                                      └▶ the log workers' sweeps: they delete what is too old, an hour later
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request

from gateway.edge.bodies import parse, read_body
from gateway.edge.edge import Edge, MayAdmin, MayView, TheEdge
from gateway.edge.openapi import request_body
from pipelines.query.live.privacy_changes import PrivacyChanges
from pipelines.query.live.text_changes import TextChanges
from schemas.privacy import PrivacyChange, PrivacyOrder, PrivacyState
from schemas.text_version import MAX_NOTE

MAX_ORDER = 10_000  # bytes

router = APIRouter(prefix="/v1/admin/sites/{site}", tags=["operations"])

Number = Annotated[int, Path(ge=1, le=999_999)]


@router.get("/privacy")
async def get_privacy(site: str, caller: MayView, edge: TheEdge) -> PrivacyState:
    """What the site keeps of its visitors and for how long, the values of pagewire.yaml, and all versions."""
    return await privacy(edge).state(site)


@router.put("/privacy", openapi_extra=request_body(PrivacyOrder))
async def put_privacy(site: str, caller: MayAdmin, edge: TheEdge, request: Request) -> PrivacyState:
    """Set what is kept, in place of pagewire.yaml.

    Fewer days delete older data for good. Without `sure` that is refused, with what it would delete.
    """
    order = parse(PrivacyOrder, await read_body(request, MAX_ORDER))
    async with edge.act(caller, "privacy.put", site):
        return await privacy(edge).put(site, order, caller.name)


@router.delete("/privacy")
async def remove_privacy(
    site: str,
    caller: MayAdmin,
    edge: TheEdge,
    over: Annotated[int | None, Query(ge=0, description="The version that was in force when you looked.")] = None,
    sure: Annotated[bool, Query(description="Also where this deletes something.")] = False,
    note: Annotated[str, Query(max_length=MAX_NOTE)] = "",
) -> PrivacyState:
    """Use the values of pagewire.yaml again. The versions stay, and can be restored."""
    change = PrivacyChange(note=note, over=over, sure=sure)
    async with edge.act(caller, "privacy.remove", site):
        return await privacy(edge).remove(site, change, caller.name)


@router.post("/privacy/versions/{version}/restore", openapi_extra=request_body(PrivacyChange))
async def restore_privacy(
    site: str, version: Number, caller: MayAdmin, edge: TheEdge, request: Request
) -> PrivacyState:
    """Use an earlier version again. This makes a new version."""
    change = parse(PrivacyChange, await read_body(request, MAX_ORDER) or b"{}")
    async with edge.act(caller, "privacy.restore", site, str(version)):
        return await privacy(edge).restore(site, version, change, caller.name)


@router.post("/privacy/rollback", openapi_extra=request_body(PrivacyChange))
async def roll_back_privacy(site: str, caller: MayAdmin, edge: TheEdge, request: Request) -> PrivacyState:
    """Use the version before the last change again; repeated, the one before that. This makes a new version."""
    change = parse(PrivacyChange, await read_body(request, MAX_ORDER) or b"{}")
    async with edge.act(caller, "privacy.rollback", site):
        return await privacy(edge).roll_back(site, change, caller.name)


def privacy(edge: Edge) -> PrivacyChanges:
    """The service that changes it, over this gateway's store."""
    now = edge.ports.now
    return PrivacyChanges(TextChanges(edge.ports.texts, edge.settings, now), edge.settings, now)
