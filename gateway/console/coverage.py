"""Coverage: topics of pages and questions together. What is shown is what `/v1/admin/.../coverage` has."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response

from gateway.console.chart import Rect, rows
from gateway.console.gaps import AGAIN, DAYS, WAIT
from gateway.console.view import ConsoleRoute, OnSite
from pipelines.query.log.coverage import KINDS, of_kind
from pipelines.query.log.kept_reports import UnderWay
from schemas.coverage import CoverageCount, CoverageReport

TOPICS = 50  # of the kind that is shown

router = APIRouter(prefix="/console", include_in_schema=False, route_class=ConsoleRoute)


@router.get("/coverage")
async def show_coverage(
    view: OnSite,
    days: Annotated[int, Query(ge=1, le=366)] = 30,
    show: Literal["uncovered", "unasked", "covered"] = "uncovered",
) -> Response:
    """Pages for some groups only are in it for keys that have one of them, as in a search."""
    assert view.caller is not None
    made = await view.edge.ports.coverage.report(view.site, days, groups=view.caller.groups, wait=WAIT)
    shows = {kind: view.say("topic-" + kind) for kind in KINDS}
    given: dict[str, Any] = {
        "days": days,
        "show": show,
        "shows": shows,
        "kinds": KINDS,
        "periods": sorted({*DAYS, days}),
    }
    if isinstance(made, UnderWay):
        response = view.page("coverage.html", 202, made=None, began=made.began_at, **given)
        response.headers["Refresh"] = str(AGAIN)
        return response
    counts = _counts(made)
    return view.page("coverage.html", made=of_kind(made, show, TOPICS), counts=counts, bars=_bars(made), **given)


def _counts(made: CoverageReport) -> dict[str, CoverageCount]:
    return {kind: getattr(made, kind) for kind in KINDS}


def _bars(made: CoverageReport) -> list[tuple[str, int, list[Rect]]]:
    """Of pages and of questions: how many there are, and a bar of their kinds."""
    counts = _counts(made)
    found = []
    for name in ("asked", "pages"):
        parts = [(kind, getattr(counts[kind], name)) for kind in KINDS]
        found.append((name, sum(count for _, count in parts), rows(parts)))
    return found
