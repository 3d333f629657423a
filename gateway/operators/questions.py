"""The question log and its gaps over HTTP, also as files for spreadsheets."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Header, Path, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import AwareDatetime

from gateway.chat.conversations import forget
from gateway.edge.auth import Caller
from gateway.edge.edge import Edge, MayAdmin, MayView, TheEdge
from gateway.edge.problems import Problem
from pipelines.conversations.conversations import UnknownConversation
from pipelines.query.log.gap_reports import UnderWay
from pipelines.query.log.gaps import KEPT, most_asked, most_missed
from pipelines.query.log.ports import QuestionReader
from pipelines.query.log.readable import csv_lines, ndjson_lines, pages
from schemas.audit_log import Via
from schemas.gaps import GapReport, GapsUnderWay
from schemas.outcome import LoggedQuestion, QuestionFilter, QuestionList, QuestionQuery
from schemas.query import RequestId
from text.spreadsheets import BOM

NDJSON = "application/x-ndjson"
Format = Literal["csv", "ndjson"]
ACCEPTED: dict[str, Format] = {"text/csv": "csv", NDJSON: "ndjson"}

MAX_DAYS = 366
MAX_WAIT = 60.0  # seconds
# The period of a report, and how long its reader waits until it is made.
Days = Annotated[float, Query(gt=0, le=MAX_DAYS, description="Length of the period.")]
Until = Annotated[AwareDatetime | None, Query(alias="to", description="Its end; default: now.")]
Wait = Annotated[float, Query(ge=0, le=MAX_WAIT, description="Seconds to wait for it.")]

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
    """Visitors' questions and their outcomes, the newest first, with counts of all that fit.

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
    """One question: what was found for it, with which certainty, its cost, and its visitor's feedback."""
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
    first = await anext(lists)  # errors are raised before the first line
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
    """The report, with pages that the caller may see. Raises: Retryable."""
    made = await edge.ports.gaps.report(site, days, until, groups=caller.groups, wait=wait)
    if isinstance(made, UnderWay):
        return made
    return most_asked(made, limit) if all else most_missed(made, limit)


@router.delete("/questions/{request_id}/conversation", status_code=204, response_class=Response)
async def erase_conversation(
    site: str, request_id: Annotated[RequestId, Path()], caller: MayAdmin, edge: TheEdge
) -> Response:
    """Delete the conversation of a question for good, as its visitor could: its questions and answers, its feedback,
    and its words in the question log. Its figures stay there."""
    await erase_words(edge, caller, site, request_id)
    return Response(status_code=204)


async def erase_words(edge: Edge, caller: Caller, site: str, request_id: str, via: Via = "http") -> None:
    """Erase. Can be repeated; an interrupted call continues.

    Raises:
        Problem: 404: neither the log nor a conversation has this question. Retryable: some may be left.
    """
    async with edge.act(caller, "conversations.erase", site, via=via) as act:
        logged = await edge.ports.questions.get(site, request_id)
        whose = await edge.conversations.whose(site, request_id)
        if logged is None and whose is None:
            raise Problem(404, "unknown-question", f"site {site} has no question {request_id}, or it is erased already")
        act.target = logged.conversation if logged is not None else edge.pseudonyms.of(site, whose[1] if whose else "")
        # The log may keep words longer than conversations are kept; it erases them by the conversation's id.
        await edge.ports.notes.forgotten(site, act.target, [request_id], edge.ports.now())
        if whose is not None:
            with suppress(UnknownConversation):  # its visitor has deleted it meanwhile
                await forget(edge, *whose)
