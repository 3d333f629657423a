"""Cases of evaluations: an answer that somebody has looked at becomes a line of a dataset's file.

Datasets are files of those who evaluate; the gateway keeps none of them, and hands out what goes into one.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response

from gateway.edge.bodies import parse, read_body
from gateway.edge.edge import MayEdit, TheEdge
from gateway.edge.openapi import request_body
from pipelines.evaluate.dataset import Case, appendable
from schemas.case import CaseFormat, NewCase

MAX_CASE = 256 * 1024  # bytes: a question, those before it, and an answer, escaped
MEDIA_TYPES: dict[CaseFormat, str] = {"ndjson": "application/x-ndjson", "yaml": "application/yaml"}
SHAPES = {MEDIA_TYPES["ndjson"]: "string", MEDIA_TYPES["yaml"]: "array"}
ACCEPTED: dict[str, CaseFormat] = {kind: name for name, kind in MEDIA_TYPES.items()}

router = APIRouter(prefix="/v1/admin/sites/{site}", tags=["operations"])


@router.post(
    "/cases",
    response_class=Response,
    responses={200: {"content": {kind: {"schema": {"type": shape}} for kind, shape in SHAPES.items()}}},
    openapi_extra=request_body(NewCase),
)
async def make_case(
    site: str,
    caller: MayEdit,
    edge: TheEdge,
    request: Request,
    format: Annotated[CaseFormat | None, Query(description="Goes before `Accept`; default: `ndjson`.")] = None,
    accept: Annotated[str, Header()] = "",
) -> Response:
    """What a case of an evaluation looks like in a dataset's file: a line of NDJSON, or an entry of YAML's list.

    Put it at the end of the file. Nothing is kept here.
    """
    new = parse(NewCase, await read_body(request, MAX_CASE))
    return file_of(site, new, format or ACCEPTED.get(accept.split(";")[0].strip().lower(), "ndjson"))


def file_of(site: str, new: NewCase, format: CaseFormat) -> Response:
    """The case as a file to keep."""
    told = new.model_dump(exclude_defaults=True, exclude={"answer"})
    case = Case.model_validate(told | {"site": site} | ({"answers": new.answer} if new.answer else {}))
    return Response(
        appendable(case, f".{format}"),
        media_type=MEDIA_TYPES[format],
        headers={"Content-Disposition": f'attachment; filename="case.{format}"'},
    )
