"""Search without an answer."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import StringConstraints

from gateway.edge.edge import MaySearch, TheEdge
from gateway.edge.labels import GivenLabels
from schemas.http import SearchKind, SearchResult
from schemas.query import MAX_QUESTION

router = APIRouter(prefix="/v1/sites/{site}", tags=["search"])

Words = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_QUESTION),
    Query(description="Words or a question."),
]


@router.get("/search")
async def search(
    site: str,
    caller: MaySearch,
    edge: TheEdge,
    q: Words,
    labels: GivenLabels,
    mode: Annotated[SearchKind, Query(description="By meaning, by words, or both.")] = "hybrid",
    size: Annotated[int, Query(ge=1, le=100)] = 10,
) -> SearchResult:
    """The passages that fit best."""
    hits = await edge.ports.search.search(site, q, kind=mode, size=size, groups=caller.groups, labels=labels)
    return SearchResult(hits=tuple(hits))
