"""Addresses that a website says have changed: any CMS can be followed that can send a list of them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request

from connectors.cms.changed import MOST, take_changed
from gateway.edge.bodies import parse, read_body
from gateway.edge.edge import MayIngest, TheEdge
from gateway.edge.openapi import request_body
from gateway.edge.problems import Problem
from schemas.changed import ChangedOrder, ChangedResult

LIMIT = 1024 * 1024  # bytes: as many addresses as are taken, and those that are too many for a plain answer

router = APIRouter(prefix="/v1/sites/{site}", tags=["content"])


@router.post("/connectors/{connector}/changed", openapi_extra=request_body(ChangedOrder))
async def changed(
    site: str,
    connector: Annotated[str, Path(description="A connector of the kind `sitemap`.")],
    caller: MayIngest,
    edge: TheEdge,
    request: Request,
) -> ChangedResult:
    """Visit these addresses of a website at once, and accept what has changed: IndexNow's `urlList`, 100 at most.

    A page that is gone, moved or excluded is deleted. Each address has its outcome; a page's receipt tells the rest.
    """
    if connector not in edge.settings.site(site).connectors:
        raise Problem(404, "unknown-connector", "the site has no connector of this name")
    order = parse(ChangedOrder, await read_body(request, LIMIT))
    if len(order.urlList) > MOST:
        raise Problem(413, "too-large", f"the limit is {MOST} addresses; for more: `pagewire reconcile {site}`")
    outcomes = await take_changed(
        edge.settings,
        site,
        connector,
        order.urlList,
        edge.ports.intake,
        lambda url: edge.ports.indexed.at(site, url, groups=None),
    )
    return ChangedResult(addresses=tuple(outcomes))
