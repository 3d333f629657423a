"""Indexes: the generations of a site's index; a candidate goes live, an earlier one comes back, one is deleted. What is
shown is what `/v1/admin/.../rebuilds` has. A rebuild is started with the command or over HTTP; the page says how.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Response
from fastapi.responses import RedirectResponse

from gateway.console.view import Administrator, ConsoleRoute, View, confirmed
from schemas.audit_log import Action
from schemas.rebuild import Generation

AGAIN = 5  # seconds until the page looks again while somebody is at work
BADGES = {"live": "good", "verified": "calm", "building": "fair"}

Done = Literal["", "promoted", "rolled-back", "discarded", "going-on"]
Number = Annotated[int, Path(ge=1)]

router = APIRouter(prefix="/console", include_in_schema=False, route_class=ConsoleRoute)


@router.get("/indexes")
async def list_generations(
    view: Administrator, done: Annotated[Done, Query(description="What the form before did.")] = ""
) -> Response:
    """The newest first. While a process is at work on them nothing can be done, and the page looks again by itself."""
    found = await view.edge.ports.rebuilds.list(view.site)
    shown = found.generations[::-1]
    response = view.page(
        "indexes.html",
        generations=shown,
        running=found.running,
        may={one.generation: [] if found.running else _may(one, shown) for one in shown},
        badges=BADGES,
        done=done,
    )
    if found.running:
        response.headers["Refresh"] = str(AGAIN)
    return response


@router.post("/indexes/rollback")
async def roll_back(view: Administrator) -> Response:
    await confirmed(view, "to make the earlier index live again")
    async with _act(view, "rebuild.rollback"):
        live = await view.edge.ports.rebuilds.rollback(view.site)
    return _after(view, "rolled-back" if live else "going-on")


@router.post("/indexes/{generation}/promote")
async def promote(view: Administrator, generation: Number) -> Response:
    await confirmed(view, "to make this index live")
    async with _act(view, "rebuild.promote", str(generation)):
        live = await view.edge.ports.rebuilds.promote(view.site, generation)
    return _after(view, "promoted" if live else "going-on")


@router.post("/indexes/{generation}/discard")
async def discard(view: Administrator, generation: Number) -> Response:
    await confirmed(view, "to delete this index")
    async with _act(view, "rebuild.discard", str(generation)):
        await view.edge.ports.rebuilds.discard(view.site, generation)
    return _after(view, "discarded")


def _may(one: Generation, all_: tuple[Generation, ...]) -> list[str]:
    """What can be done with a generation. `all_`: the newest first."""
    if one.state == "live":
        return []
    newest = next((other for other in all_ if other.state == "previous"), None)
    first = {"verified": "promote"}.get(one.state, "rollback" if one is newest else "")
    return [*([first] if first else []), "discard"]


def _act(view: View, action: Action, target: str = "") -> Any:
    assert view.caller is not None
    return view.edge.act(view.caller, action, view.site, target, via="console")


def _after(view: View, done: Done) -> Response:
    return RedirectResponse(f"/console/indexes?site={view.site}&done={done}", 303)
