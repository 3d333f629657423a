"""Questions in, answers out: streamed, resumed, stopped, or whole."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Annotated

import structlog
from fastapi import APIRouter, Header, Path, Query, Request, Response
from fastapi.responses import JSONResponse
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from gateway.chat.sse import EventStream, Frames, PeekableEvents, client_left, steps_for, with_steps
from gateway.edge.auth import Caller
from gateway.edge.bodies import parse, read_body
from gateway.edge.edge import Edge, LanguageHint, MayAsk, MayResume, MayStop, TheEdge, owner_of
from gateway.edge.openapi import event_stream, request_body
from gateway.edge.problems import Problem, message
from pipelines.conversations.ask import UnknownAnswer
from pipelines.conversations.conversations import AnswerUnderWay
from pipelines.runtime.errors import Retryable
from schemas.answer import Accepted, Answered, Failed, QuestionRephrased, SourcesFound
from schemas.base import Lang
from schemas.http import ChatRequest, ChatResponse
from schemas.query import Question, RequestId
from text.language import language_of, tells_language

BODY_LIMIT = 2 * 1024 * 1024  # bytes: room for 100,000 escaped emoji, which should get a clearer answer than 413
FIRST_EVENT_WAIT = 1.0  # seconds in which a failure can still become a status code
STOP_TIMEOUT = 5.0  # seconds to send the stop of an abandoned answer
ID_BYTES = 16  # 128 bits: it cannot be guessed
ALIKE = ChatResponse.model_fields.keys() & Answered.model_fields.keys()  # what a whole answer has of its last event

LastEventId = Annotated[str, Header(max_length=200)]
ConversationOfAnswer = Annotated[
    RequestId | None, Query(description="Whose answer it is. Without it, that is searched for, which takes longer.")
]

log = structlog.get_logger(__name__)

router = APIRouter(prefix="/v1/sites/{site}", tags=["chat"])


@router.post(
    "/chat",
    response_model=ChatResponse,
    responses={200: event_stream("The whole answer; with `Accept: text/event-stream`, its events as they come.")},
    openapi_extra=request_body(ChatRequest),
)
async def chat(site: str, caller: MayAsk, edge: TheEdge, request: Request, last_event_id: LastEventId = "") -> Response:
    """Ask a question.

    Without `conversation_id` it begins a conversation; with one it is understood as its continuation. While the last
    question of a conversation is being answered, another is refused (409 `answer-under-way`, with its `request_id`).

    With `Last-Event-ID` no question is asked: a client that lost the stream and repeats its request continues there.
    """
    if last_event_id:
        return await come_back(edge, caller, site, last_event_id)
    asked = _question(await read_body(request, BODY_LIMIT))
    if caller.visitor is not None and (asked.ranked or not asked.keep):
        raise Problem(403, "forbidden", "`keep` and `ranked` are for programs with a key")
    with edge.admit(site, caller, LanguageHint(asked.question, asked.lang)):
        question = new_question(edge, caller, site, asked.question, asked.lang)
        question = question.model_copy(update={"ranked": asked.ranked, "labels": asked.labels})
        if not asked.keep:
            events = edge.ports.answers.ask(question)  # without `logged_as` no stage logs its outcome
            return await _streamed(edge, request, caller, question, PeekableEvents(events))
        if asked.conversation_id is None:
            position = await edge.ports.answers.here(question.request_id)
            await edge.conversations.begin(owner_of(caller, site), question, position)
        else:
            question = question.model_copy(update={"conversation_id": asked.conversation_id})
            question = await continue_conversation(edge, caller, question, named=asked.lang is not None)
        return await ask(edge, request, caller, question)


def new_question(edge: Edge, caller: Caller, site: str, text: str, lang: Lang | None = None) -> Question:
    """A question as it goes into the log, in a conversation of its own. It finds what its caller may read."""
    now, languages = edge.ports.now(), edge.settings.site(site).languages
    return Question(
        request_id=edge.ports.answers.new_id(),
        conversation_id=secrets.token_urlsafe(ID_BYTES),
        site=site,
        lang=lang or language_of(text, languages),
        guessed=lang is None and not tells_language(text, languages),
        question=text,
        groups=caller.groups,
        importing=edge.ports.receipts.is_importing(site),
        asked_at=now,
        deadline=now + timedelta(seconds=edge.settings.question_timeout),
    )


async def continue_conversation(
    edge: Edge, caller: Caller, question: Question, replaces: str | None = None, *, named: bool = True
) -> Question:
    """The question with the history of its conversation, which has kept it.

    Args:
        named: the request names its language.

    Raises:
        UnknownConversation, Retryable. Problem: 409.
    """
    owner, position = owner_of(caller, question.site), await edge.ports.answers.here(question.request_id)
    try:
        languages = () if named else edge.settings.site(question.site).languages
        return await edge.conversations.go_on(owner, question, position, replaces=replaces, languages=languages)
    except AnswerUnderWay as err:
        raise Problem(409, err.code, str(err), extra={"request_id": err.request_id}) from None


async def ask(edge: Edge, request: Request, caller: Caller, question: Question) -> Response:
    """Ask a question that its conversation has kept: the response, streamed or whole."""
    owner = owner_of(caller, question.site)
    # Programs have no list of conversations to find theirs in, and pay for what they ask.
    titled = caller.visitor is not None
    asked = edge.ports.answers.ask(edge.logged(question, caller))
    events = PeekableEvents(edge.conversations.follow(owner, question, asked, titled=titled))
    return await _streamed(edge, request, caller, question, events)


async def _streamed(
    edge: Edge, request: Request, caller: Caller, question: Question, events: PeekableEvents
) -> Response:
    """The events of a question's answer, streamed or whole."""
    deadline = asyncio.get_running_loop().time() + edge.settings.question_timeout
    steps = steps_for(caller, edge.settings, question.site)
    if not wants_stream(", ".join(request.headers.getlist("accept"))):
        stop = partial(stopped, edge, caller, question)
        answer = await whole(events, question, deadline, request.receive, stop)
        answer, hidden = with_steps(answer, steps)
        return JSONResponse(answer.model_dump(mode="json", exclude=hidden))
    await events.begin(FIRST_EVENT_WAIT)
    ids = edge.event_ids.of(owner_of(caller, question.site), question.request_id)
    return EventStream(events, Frames(ids.sign, question.lang, steps=steps), deadline)


def wants_stream(accept: str) -> bool:
    """Whether `Accept` (RFC 9110, 12.5.1) prefers a stream to JSON; if both are equal, whether it names the stream."""
    ranges = {}
    for part in accept.lower().split(","):
        kind, *parameters = (piece.strip() for piece in part.split(";"))
        q = next((value.removeprefix("q=") for value in parameters if value.startswith("q=")), "1")
        # An invalid quality counts as 0.
        ranges[kind] = float(q) if re.fullmatch(r"[01](\.\d{0,3})?", q, re.ASCII) else 0.0

    def quality(*kinds: str) -> float:
        return next((ranges[kind] for kind in kinds if kind in ranges), 0.0)

    stream = quality("text/event-stream", "text/*", "*/*")
    json = quality("application/json", "application/*", "*/*")
    return stream > json or (stream == json > 0 and "text/event-stream" in ranges)


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
    caller: MayResume,
    edge: TheEdge,
    request: Request,
    last_event_id: LastEventId = "",
    conversation_id: ConversationOfAnswer = None,
) -> Response:
    """Read on where a broken stream ended, on any gateway.

    `Last-Event-ID` works for the caller that received the event. Without it the answer starts from the beginning, if
    it is in a conversation of the caller.
    """
    owner = owner_of(caller, site)
    if last_event_id:
        return await _follow_on(
            edge, caller, site, request_id, edge.event_ids.position(owner, request_id, last_event_id)
        )
    # A made-up id must not cause a search through a day of answers.
    accepted, position = await edge.conversations.accepted(owner, request_id, conversation_id)
    return await _follow_on(edge, caller, site, request_id, position, accepted)


async def come_back(edge: Edge, caller: Caller, site: str, last_event_id: str) -> Response:
    """The rest of an answer after this event. Clients repeat a request whose stream broke, and a second answer costs
    money.

    Raises: Problem: 400.
    """
    request_id = last_event_id.partition(":")[0]
    position = edge.event_ids.position(owner_of(caller, site), request_id, last_event_id)
    return await _follow_on(edge, caller, site, request_id, position)


async def _follow_on(
    edge: Edge, caller: Caller, site: str, request_id: str, position: str, accepted: Accepted | None = None
) -> Response:
    events = PeekableEvents(edge.ports.answers.resume(site, request_id, position))
    if not await events.begin(FIRST_EVENT_WAIT):
        return Response(status_code=204)
    deadline = asyncio.get_running_loop().time() + edge.settings.question_timeout
    lang = edge.settings.site(site).languages[0]
    ids = edge.event_ids.of(owner_of(caller, site), request_id)
    steps = steps_for(caller, edge.settings, site)
    return EventStream(events, Frames(ids.sign, lang, position, accepted, steps=steps), deadline)


@router.delete("/answers/{request_id}", status_code=202, response_class=Response)
async def stop(
    site: str,
    request_id: Annotated[RequestId, Path()],
    caller: MayStop,
    edge: TheEdge,
    conversation_id: ConversationOfAnswer = None,
) -> Response:
    """Stop an answer: the model call ends, and the stream ends with the text so far, in an `answer` with `stopped`.

    A caller that knows the request id may stop the answer on its site, as it may read it. Stopping twice, too late, or
    on another site has no effect.
    """
    await _stop(edge, caller, site, request_id, conversation_id)
    return Response(status_code=202)


async def _stop(edge: Edge, caller: Caller, site: str, request_id: str, conversation_id: str | None) -> None:
    await edge.ports.answers.stop(site, request_id)
    # The next question need not wait until the stage has received the stop; if this cannot be stored, it does wait.
    with suppress(UnknownAnswer, Retryable):
        await edge.conversations.stopped(owner_of(caller, site), request_id, conversation_id)


async def stopped(edge: Edge, caller: Caller, question: Question) -> None:
    """Stop an answer whose client has disconnected and cannot resume it."""
    try:
        async with asyncio.timeout(STOP_TIMEOUT):
            await _stop(edge, caller, question.site, question.request_id, question.conversation_id)
    except (Retryable, TimeoutError) as err:
        log.warning("an answer nobody reads goes on", error=str(err))


def _question(body: bytes) -> ChatRequest:
    try:
        return parse(ChatRequest, body)
    except Problem as problem:
        # A chat page shows these two mistakes differently, so each has its own code.
        codes = {"string-too-long": "question-too-long", "string-too-short": "question-empty"}
        for error in problem.errors:
            if error.field == "question" and error.code in codes:
                problem.code = codes[error.code]
        raise


async def whole(
    events: PeekableEvents, question: Question, deadline: float, receive: Receive, stop: Callable[[], Awaitable[None]]
) -> ChatResponse:
    """Wait for the end, as long as the client does.

    Args:
        receive: of the request, which was read.
        stop: called if the client disconnects before the end.

    Raises:
        Problem: 502 or 504, in plain words.
        ClientDisconnect.
    """
    leaving = asyncio.create_task(client_left(receive))
    reading = asyncio.create_task(_read_to_the_end(events, question, deadline, leaving))
    try:
        await asyncio.wait({reading, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if reading.done():
            return reading.result()
    finally:
        for task in (leaving, reading):
            task.cancel()
        await asyncio.gather(leaving, reading, return_exceptions=True)
    await stop()
    raise ClientDisconnect


async def _read_to_the_end(
    events: PeekableEvents, question: Question, deadline: float, leaving: asyncio.Task[None]
) -> ChatResponse:
    rephrased, sources, answer = None, None, None
    try:
        async with asyncio.timeout_at(deadline):
            now = asyncio.get_running_loop().time
            while (followed := await events.take()) is not None:
                # A generator may lose a cancellation that arrives with its next event.
                if now() > deadline or leaving.done():
                    raise TimeoutError
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
        mode=rephrased.mode if rephrased else None,
        grade=sources.grade if sources else 0,
        answer=answer.text,
        **{name: getattr(answer, name) for name in ALIKE},
    )
