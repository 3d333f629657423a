"""The query parameter `label`, by which searches and lists are filtered."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query

from gateway.edge.problems import FieldProblem, Problem
from schemas.labels import Labels, parse_labels

Written = Annotated[
    list[str],
    Query(
        description="`KEY:VALUE`, repeatable: only pages with this label. Of one key any of the values is enough, of "
        "several keys each is wanted."
    ),
]


def _given(label: Written = []) -> Labels:  # noqa: B006  a default of FastAPI, which copies it
    """Raises: Problem: 422."""
    try:
        return parse_labels(label)
    except ValueError as err:
        field = FieldProblem(field="label", code="value-error", message=str(err))
        raise Problem(422, "invalid", f"label: {err}", errors=[field]) from None


GivenLabels = Annotated[Labels, Depends(_given)]
