"""Parameters of paths and queries that several routes take."""

from __future__ import annotations

from typing import Annotated, ClassVar

from fastapi import Depends, Query
from starlette.convertors import Convertor, register_url_convertor

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
# Slashes (`news%2F12`) belong to page ids in paths, and so does whatever PageId will refuse.
PAGE_ID = "{page_id:page_id}"


class PageIdConvertor(Convertor[str]):
    """All that is left of the path."""

    regex: ClassVar[str] = r"(?s:.+)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("page_id", PageIdConvertor())
