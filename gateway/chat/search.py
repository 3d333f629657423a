"""Search without an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import StringConstraints

from gateway.edge.edge import MaySearch, TheEdge
from gateway.edge.problems import FieldProblem, Problem
from schemas.http import SearchKind, SearchResult
from schemas.labels import Labels, parse_labels
from schemas.query import MAX_QUESTION

router = APIRouter(prefix="/v1/sites/{site}", tags=["search"])

Words = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_QUESTION),
    Query(description="Words or a question."),
]

LABEL = (
    "`KEY:VALUE`, repeatable: pages with this label alone. Of the same key one of the values is enough; of different "
    "keys each is wanted."
)


@router.get("/search")
async def search(
    site: str,
    caller: MaySearch,
    edge: TheEdge,
    q: Words,
    mode: Annotated[SearchKind, Query(description="By meaning, by words, or both.")] = "hybrid",
    size: Annotated[int, Query(ge=1, le=100)] = 10,
    label: Annotated[list[str], Query(description=LABEL)] = [],  # noqa: B006  FastAPI's own default
) -> SearchResult:
    """The passages that fit best."""
    labels = _labels(label)
    hits = await edge.ports.search.search(site, q, kind=mode, size=size, groups=caller.groups, labels=labels)
    return SearchResult(hits=tuple(hits))


def _labels(written: Sequence[str]) -> Labels:
    """Raises: Problem: 422."""
    try:
        return parse_labels(written)
    except ValueError as err:
        field = FieldProblem(field="label", code="value-error", message=str(err))
        raise Problem(422, "invalid", f"label: {err}", errors=[field]) from None
