"""What visitors ask and the site does not answer, over HTTP: for whoever writes its pages."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import AwareDatetime

from gateway.edge.auth import Caller
from gateway.edge.edge import Edge, MayView, TheEdge
from pipelines.query.log.gaps import KEPT, most_asked, most_missed
from pipelines.query.log.kept_reports import UnderWay
from schemas.gaps import GapReport, GapsUnderWay

MAX_DAYS = 366
MAX_WAIT = 60.0  # seconds

# The period of a report, and how long its reader waits until it is made.
Days = Annotated[float, Query(gt=0, le=MAX_DAYS, description="Length of the period.")]
Until = Annotated[AwareDatetime | None, Query(alias="to", description="Its end; default: now.")]
Wait = Annotated[float, Query(ge=0, le=MAX_WAIT, description="Seconds to wait for it.")]

router = APIRouter(prefix="/v1/admin/sites/{site}", tags=["operations"])


@router.get("/gaps", response_model=GapReport, responses={202: {"model": GapsUnderWay}})
async def list_gaps(
    site: str,
    caller: MayView,
    edge: TheEdge,
    days: Days = 30,
    until: Until = None,
    all: Annotated[bool, Query(description="What is asked most, whether it is answered or not.")] = False,
    limit: Annotated[int, Query(ge=1, le=KEPT, description="Groups, at most.")] = 50,
    wait: Wait = 25,
) -> Response:
    """Questions that were refused, disliked or badly grounded, grouped by meaning, those missed most first.

    Made in the background, and kept for five minutes: 202 while it is being made, then ask again. 10,000 questions take
    some seconds, more where their vectors are not in the log.
    """
    made = await gap_report(edge, caller, site, days, until, all=all, limit=limit, wait=wait)
    if isinstance(made, UnderWay):
        under_way = GapsUnderWay(site=site, began_at=made.began_at)
        return Response(under_way.model_dump_json(), status_code=202, media_type="application/json")
    return Response(made.model_dump_json(), media_type="application/json")


async def gap_report(
    edge: Edge,
    caller: Caller,
    site: str,
    days: float,
    until: datetime | None = None,
    *,
    all: bool = False,
    limit: int,
    wait: float,
) -> GapReport | UnderWay:
    """Of the groups that the caller may see. Raises: Retryable."""
    made = await edge.ports.gaps.report(site, days, until, groups=caller.groups, wait=wait)
    if isinstance(made, UnderWay):
        return made
    return most_asked(made, limit) if all else most_missed(made, limit)
