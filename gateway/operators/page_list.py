"""Pages by their ids and addresses, over HTTP: under which name a page's changes go."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from gateway.edge.edge import MayView, TheEdge
from schemas.http import PageList

MOST_LISTED = 1_000

router = APIRouter(prefix="/v1/admin/sites/{site}", tags=["operations"])


@router.get("/pages")
async def list_pages(
    site: str,
    caller: MayView,
    edge: TheEdge,
    url: Annotated[str, Query(max_length=2_000, description="Only pages of this address; with or without host.")] = "",
    after: Annotated[str, Query(max_length=4_000, description="`next` of the answer before.")] = "",
    limit: Annotated[int, Query(ge=1, le=MOST_LISTED)] = 100,
) -> PageList:
    """Pages that visitors can find, by their ids. Pages for access groups are told to keys that have one of them."""
    if url:
        return PageList(pages=tuple(await edge.ports.indexed.at(site, url, groups=caller.groups)), next=None)
    return await edge.ports.indexed.pages(site, groups=caller.groups, after=after, limit=limit)
