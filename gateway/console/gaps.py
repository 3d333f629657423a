"""Gaps: what visitors ask and the site does not answer, grouped by meaning. What is shown is what `/v1/admin/.../gaps`
has.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response

from gateway.console.view import ConsoleRoute, OnSite
from pipelines.query.log.gaps import most_asked, most_missed
from pipelines.query.log.kept_reports import UnderWay

DAYS = (7, 30, 90)
GROUPS = 50
WAIT = 10.0  # seconds until the page says that the report is being made ...
AGAIN = 5  # ... and seconds until it looks again by itself

router = APIRouter(prefix="/console", include_in_schema=False, route_class=ConsoleRoute)


@router.get("/gaps")
async def list_gaps(
    view: OnSite,
    days: Annotated[int, Query(ge=1, le=366)] = 30,
    show: Literal["missed", "asked"] = "missed",
) -> Response:
    """`show=asked`: what is asked most, whether it is answered or not."""
    assert view.caller is not None
    made = await view.edge.ports.gaps.report(view.site, days, groups=view.caller.groups, wait=WAIT)
    shows = {which: view.say("show-" + which) for which in ("missed", "asked")}
    given: dict[str, Any] = {"days": days, "show": show, "shows": shows, "periods": sorted({*DAYS, days})}
    if isinstance(made, UnderWay):
        response = view.page("gaps.html", 202, made=None, began=made.began_at, **given)
        response.headers["Refresh"] = str(AGAIN)
        return response
    shown = most_asked(made, GROUPS) if show == "asked" else most_missed(made, GROUPS)
    return view.page("gaps.html", made=shown, **given)
