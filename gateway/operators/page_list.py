"""Pages by their ids and addresses, over HTTP: under which name a page's changes go."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from gateway.edge.edge import MayView, TheEdge
from gateway.edge.labels import GivenLabels
from schemas.http import LabelList, PageList
from schemas.labels import have_labels, label_tokens

MOST_LISTED = 1_000

router = APIRouter(prefix="/v1/admin/sites/{site}", tags=["operations"])


@router.get("/pages")
async def list_pages(
    site: str,
    caller: MayView,
    edge: TheEdge,
    labels: GivenLabels,
    url: Annotated[str, Query(max_length=2_000, description="Only pages of this address; with or without host.")] = "",
    after: Annotated[str, Query(max_length=4_000, description="`next` of the answer before.")] = "",
    limit: Annotated[int, Query(ge=1, le=MOST_LISTED)] = 100,
) -> PageList:
    """Pages that visitors can find, by their ids. Pages for access groups are told to keys that have one of them."""
    if url:
        at = await edge.ports.indexed.at(site, url, groups=caller.groups)
        return PageList(pages=tuple(page for page in at if have_labels(label_tokens(page.labels), labels)), next=None)
    return await edge.ports.indexed.pages(site, groups=caller.groups, after=after, limit=limit, labels=labels)


@router.get("/labels")
async def list_labels(site: str, caller: MayView, edge: TheEdge) -> LabelList:
    """The labels of the pages that visitors can find, with the number of pages, up to 500. Pages for access groups are
    counted for keys that have one of them."""
    return await edge.ports.indexed.labels(site, caller.groups)
