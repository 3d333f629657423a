"""Questions in, answers out: streamed, resumed, or whole (CONTRACT 3 and 4)."""

from __future__ import annotations

import asyncio
import secrets
from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Header, Path, Request, Response
from fastapi.responses import JSONResponse

from gateway.bodies import parse, read_body
from gateway.edge import MayChat, TheEdge, address_of
from gateway.messages import message
from gateway.openapi import event_stream, request_body
from gateway.problems import Problem
from gateway.sse import EventStream, Patient, frames
from schemas.answer import Answered, Failed, QuestionRephrased, SourcesFound
from schemas.http import ChatRequest, ChatResponse
from schemas.query import Question, RequestId

BODY_LIMIT = 2 * 1024 * 1024  # bytes: room for 100,000 escaped emoji, which deserve a better answer than 413
FIRST_EVENT_WAIT = 1.0  # seconds in which a failure can still become a status code
ID_BYTES = 16  # 128 bits: whoever holds a request id may read its answer, so nobody must guess one

router = APIRouter(prefix="/v1/sites/{site}", tags=["chat"])


@router.post(
    "/chat",
    response_model=ChatResponse,
    responses={200: event_stream("The whole answer; with `Accept: text/event-stream`, its events as they come.")},
    openapi_extra=request_body(ChatRequest),
)
async def chat(site: str, caller: MayChat, edge: TheEdge, request: Request) -> Response:
    """Ask a question."""
    asked = _question(await read_body(request, BODY_LIMIT))
    if caller.visitor is not None:
        edge.rates.count("ask", address_of(request), caller.visitor)
    seconds = edge.settings.question_timeout
    now = datetime.now(UTC)
    question = Question(
        request_id=secrets.token_urlsafe(ID_BYTES),
        conversation_id=asked.conversation_id or secrets.token_urlsafe(ID_BYTES),
        site=site,
        lang=asked.lang or edge.settings.site(site).languages[0],
        question=asked.question,
        asked_at=now,
        deadline=now + timedelta(seconds=seconds),
    )
    deadline = asyncio.get_running_loop().time() + seconds
    events = Patient(edge.ports.answers.ask(question))
    if "text/event-stream" not in request.headers.get("accept", ""):
        return JSONResponse((await _whole(events, question, deadline)).model_dump(mode="json"))
    await events.begin(FIRST_EVENT_WAIT)
    return EventStream(events, frames(events, question.request_id, question.lang, deadline))


@router.get(
    "/answers/{request_id}/events",
    response_class=Response,
    responses={
        200: event_stream("The events after `Last-Event-ID`."),
        204: {"description": "There are none: the answer is complete."},
    },
)
async def resume(
    site: str,
    request_id: Annotated[RequestId, Path()],
    caller: MayChat,
    edge: TheEdge,
    last_event_id: Annotated[str, Header(max_length=200)] = "",
) -> Response:
    """Read on where a broken stream ended, on any gateway. Without `Last-Event-ID`: from the beginning."""
    given, _, position = last_event_id.partition(":")
    if last_event_id and given != request_id:
        raise Problem(400, "bad-position", "Last-Event-ID: not an event of this answer")
    events = Patient(edge.ports.answers.resume(request_id, position))
    if not await events.begin(FIRST_EVENT_WAIT):
        return Response(status_code=204)
    deadline = asyncio.get_running_loop().time() + edge.settings.question_timeout
    lang = edge.settings.site(site).languages[0]
    return EventStream(events, frames(events, request_id, lang, deadline, position))


def _question(body: bytes) -> ChatRequest:
    try:
        return parse(ChatRequest, body)
    except Problem as problem:
        # The two mistakes that a chat page wants to tell its visitor apart get their own code.
        codes = {"string-too-long": "question-too-long", "string-too-short": "question-empty"}
        for error in problem.errors:
            if error.field == "question" and error.code in codes:
                problem.code = codes[error.code]
        raise


async def _whole(events: Patient, question: Question, deadline: float) -> ChatResponse:
    """Wait for the end."""
    rephrased, sources, answer = None, None, None
    try:
        async with asyncio.timeout_at(deadline):
            while (followed := await events.take()) is not None:
                match followed.event.event:
                    case QuestionRephrased() as event:
                        rephrased = event
                    case SourcesFound() as event:
                        sources = event
                    case Answered() as event:
                        answer = event
                    case Failed(code=code, message=text):
                        raise Problem(504 if code == "timeout" else 502, code, text)
    except TimeoutError:
        raise Problem(504, "timeout", message("timeout", question.lang)) from None
    finally:
        await events.aclose()
    if answer is None:
        raise Problem(502, "internal", message("internal", question.lang))
    return ChatResponse(
        request_id=question.request_id,
        conversation_id=question.conversation_id,
        question=question.question,
        rephrased=rephrased.question if rephrased else question.question,
        grade=sources.grade if sources else 0,
        answer=answer.text,
        sources=answer.sources,
        extractive=answer.extractive,
        usage=answer.usage,
        timings_ms=answer.timings_ms,
    )
