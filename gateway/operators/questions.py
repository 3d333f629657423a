"""What visitors asked, over HTTP: for whoever runs a site, for the console and for spreadsheets."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Literal

from fastapi import APIRouter, Header, Path, Query, Response
from fastapi.responses import StreamingResponse

from gateway.edge.edge import MayView, TheEdge
from gateway.edge.problems import Problem
from pipelines.query.log.listing import csv_lines, ndjson_lines, pages
from pipelines.query.log.ports import QuestionReader
from schemas.outcome import LoggedQuestion, QuestionFilter, QuestionList, QuestionQuery
from schemas.query import RequestId
from text.spreadsheets import BOM

NDJSON = "application/x-ndjson"
Format = Literal["csv", "ndjson"]
ACCEPTED: dict[str, Format] = {"text/csv": "csv", NDJSON: "ndjson"}

router = APIRouter(prefix="/v1/admin/sites/{site}", tags=["operations"])


@router.get(
    "/questions",
    response_model=QuestionList,
    responses={200: {"content": {kind: {"schema": {"type": "string"}} for kind in ("text/csv", NDJSON)}}},
)
async def list_questions(
    site: str,
    caller: MayView,
    edge: TheEdge,
    wanted: Annotated[QuestionQuery, Query()],
    accept: Annotated[str, Header()] = "",
) -> Response:
    """What visitors asked and what became of it, the newest first, with counts of all that fit.

    As CSV or as lines of JSON with `format=csv` or `ndjson`, or where `Accept` asks for it. A question is listed within
    seconds of its answer.
    """
    kind = None if wanted.format == "json" else wanted.format or ACCEPTED.get(accept.split(";")[0].strip().lower())
    if kind is not None:
        return await file_of(edge.questions(caller), site, wanted, kind)
    found = await edge.questions(caller).find(site, wanted, wanted.limit, wanted.after)
    return Response(found.model_dump_json(), media_type="application/json")


@router.get("/questions/{request_id}")
async def show_question(
    site: str, request_id: Annotated[RequestId, Path()], caller: MayView, edge: TheEdge
) -> LoggedQuestion:
    """One question: what was found for it, how sure that was, what it cost, and what its visitor thought."""
    found = await edge.questions(caller).get(site, request_id)
    if found is None:
        raise Problem(404, "unknown-question", f"the log of site {site} has no question {request_id}")
    return found


async def file_of(
    reader: QuestionReader, site: str, wanted: QuestionFilter, kind: Format = "csv", *, bom: bool = False
) -> Response:
    """All questions that fit, as a file to keep.

    Args:
        bom: of CSV, for Excel.

    Raises:
        Retryable.
    """
    lists = pages(reader, site, wanted)
    first = await anext(lists)  # what is wrong is told before the first line
    return StreamingResponse(
        _csv(first, lists, BOM if bom else "") if kind == "csv" else _ndjson(first, lists),
        media_type="text/csv; charset=utf-8" if kind == "csv" else NDJSON,
        headers={"Content-Disposition": f'attachment; filename="questions-{site}.{kind}"'},
    )


async def _csv(first: QuestionList, rest: AsyncGenerator[QuestionList, None], begin: str) -> AsyncGenerator[str, None]:
    async with aclosing(rest):
        yield begin + csv_lines(first.questions, header=True)
        async for page in rest:
            yield csv_lines(page.questions, header=False)


async def _ndjson(first: QuestionList, rest: AsyncGenerator[QuestionList, None]) -> AsyncGenerator[str, None]:
    async with aclosing(rest):
        yield ndjson_lines(first.questions)
        async for page in rest:
            yield ndjson_lines(page.questions)
