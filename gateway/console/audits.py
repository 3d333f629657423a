"""Audits: does the live index hold what the change log says? Begun here, looked at here, repaired here.

GET indexes/audit ─▶ the last run, or the one at work ─▶ POST indexes/audit ─▶ it looks again by itself until it is over
"""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response
from fastapi.responses import RedirectResponse

from gateway.console.view import Administrator, ConsoleRoute, confirmed, form_of
from gateway.operators.audit import begun, last_run
from pipelines.operate.audit.runs import AuditOrder
from schemas.keys import parse_page_key

AGAIN = 3  # seconds until the page looks again while one is at work
BADGES = {"running": "fair", "broken-off": "bad", "failed": "bad", "done": "calm"}

router = APIRouter(prefix="/console", include_in_schema=False, route_class=ConsoleRoute)


@router.get("/indexes/audit")
async def show_audit(
    view: Administrator, done: Annotated[Literal["", "begun"], Query(description="What the form before did.")] = ""
) -> Response:
    last = await last_run(view.edge, view.site)
    run = last.run
    now = None if run is None else run.left or run.found
    response = view.page(
        "audit.html",
        run=run,
        state=last.state,
        found=now,
        addresses={each.page_key: parse_page_key(each.page_key) for each in (now.findings if now else ())},
        badges=BADGES,
        done=done,
    )
    if last.state == "running":
        response.headers["Refresh"] = str(AGAIN)
    return response


@router.post("/indexes/audit")
async def start_audit(view: Administrator) -> Response:
    """It changes nothing, so nothing is asked first."""
    assert view.caller is not None
    await form_of(view)
    await begun(view.edge, view.caller, view.site, AuditOrder(), "console")
    return RedirectResponse(f"/console/indexes/audit?site={view.site}&done=begun", 303)


@router.post("/indexes/repair")
async def start_repair(view: Administrator) -> Response:
    """If the form says that it is meant."""
    assert view.caller is not None
    form = await confirmed(view, "to repair the index")
    order = AuditOrder(repair=True, force=form.get("force") == "yes")
    await begun(view.edge, view.caller, view.site, order, "console")
    return RedirectResponse(f"/console/indexes/audit?site={view.site}&done=begun", 303)
