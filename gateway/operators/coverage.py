"""What the site's pages speak of beside what its visitors ask, over HTTP: for whoever writes its pages."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from gateway.edge.edge import MayView, TheEdge
from gateway.operators.gaps import Days, Until, Wait
from pipelines.query.log.coverage import KEPT, of_kind
from pipelines.query.log.kept_reports import UnderWay
from schemas.coverage import CoverageReport, CoverageUnderWay, TopicKind

router = APIRouter(prefix="/v1/admin/sites/{site}", tags=["operations"])


@router.get("/coverage", response_model=CoverageReport, responses={202: {"model": CoverageUnderWay}})
async def show_coverage(
    site: str,
    caller: MayView,
    edge: TheEdge,
    days: Days = 30,
    until: Until = None,
    kind: Annotated[TopicKind | None, Query(description="Only topics of this kind; default: of all three.")] = None,
    limit: Annotated[int, Query(ge=1, le=KEPT, description="Topics of each kind, at most.")] = 50,
    wait: Wait = 25,
) -> Response:
    """Pages and questions grouped into topics: asked and not covered, covered and not asked, both.

    Pages for access groups are in it for keys that have one of them. Made in the background, and kept for five minutes:
    202 while it is being made, then ask again.
    """
    made = await edge.ports.coverage.report(site, days, until, groups=caller.groups, wait=wait)
    if isinstance(made, UnderWay):
        under_way = CoverageUnderWay(site=site, began_at=made.began_at)
        return Response(under_way.model_dump_json(), status_code=202, media_type="application/json")
    return Response(of_kind(made, kind, limit).model_dump_json(), media_type="application/json")
