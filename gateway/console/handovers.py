"""Messages that visitors left for a person: their delivery, and once more. As `/v1/admin/.../handovers`."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from fastapi.responses import RedirectResponse

from gateway.console.view import Administrator, ConsoleRoute, confirmed
from gateway.operators.handovers import redelivered
from schemas.handover import Reference

SHOWN = 50
BADGES = {"waiting": "fair", "delivered": "good", "failed": "bad"}

router = APIRouter(prefix="/console", include_in_schema=False, route_class=ConsoleRoute)


@router.get("/handovers")
async def list_handovers(view: Administrator, after: Annotated[str, Query(max_length=100)] = "") -> Response:
    """The newest first."""
    found, more = await view.edge.ports.handovers.of_site(view.site, None, SHOWN, after or None)
    set_up = view.edge.settings.site(view.site).hands_over
    return view.page("handovers.html", found=found, next=more, after=after, badges=BADGES, set_up=set_up)


@router.post("/handovers/{reference}/redeliver")
async def redeliver_handover(view: Administrator, reference: Annotated[Reference, Path()]) -> Response:
    """If the form says that it is meant."""
    assert view.caller is not None
    await confirmed(view, "to deliver the message again")
    await redelivered(view.edge, view.caller, view.site, reference, "console")
    return RedirectResponse(f"/console/handovers?site={view.site}", 303)
