"""OpenAI's chat completions over a site's pages, so that its clients and chat programs work unchanged.

    messages ─▶ last of the user = question, before it = history ─▶ the same log, stages and events as any question

Nothing is kept here: the client holds the conversation. A program with a key is trusted with what we said in it; a
visitor, who could have us say anything, only with what they asked. A client cannot come back to a broken stream
either, so one that hangs up has stopped its answer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from itertools import pairwise
from typing import Annotated, Any

import structlog
from fastapi import APIRouter, Path, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

from gateway.chat.chat import BODY_LIMIT, FIRST_EVENT_WAIT, new_question, whole
from gateway.chat.sse import EventStream, Patient
from gateway.edge.auth import Caller
from gateway.edge.bodies import parse, read_body
from gateway.edge.edge import Asked, Edge, MayChatSomewhere, TheEdge
from gateway.edge.messages import Trouble, message
from gateway.edge.openapi import request_body
from gateway.edge.problems import Problem, invalid, problem_of
from gateway.ports import Followed
from pipelines.conversations.turns import newest
from pipelines.query.ports import ContentFiltered
from pipelines.runtime.errors import PagewireError, Retryable
from schemas.answer import Answered, Done, Failed, Restart, Token, Usage
from schemas.base import SiteId
from schemas.completion import (
    ChatMessage,
    Choice,
    ChunkChoice,
    Completion,
    CompletionChunk,
    CompletionError,
    CompletionErrorDocument,
    CompletionMessage,
    CompletionRequest,
    CompletionUsage,
    Delta,
    FinishReason,
    Model,
    ModelList,
)
from schemas.http import ChatResponse
from schemas.query import MAX_QUESTION, Question, Turn

log = structlog.get_logger(__name__)

STOP_TIMEOUT = 5.0  # seconds for telling the stage that its reader has gone
# OpenAI's clients raise by status; programs read the type.
TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


class OpenAIRoute(APIRoute):
    """Refuses in OpenAI's shape."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handler(request: Request) -> Response:
            try:
                return await handle(request)
            except Problem as err:
                return refusal(err)
            except PagewireError as err:
                return refusal(problem_of(err))
            except RequestValidationError as err:
                return refusal(invalid({**e, "loc": e["loc"][1:]} for e in err.errors()))

        return handler


router = APIRouter(
    prefix="/v1",
    tags=["openai"],
    route_class=OpenAIRoute,
    responses={"default": {"model": CompletionErrorDocument, "description": "Refused or failed; see `error.code`."}},
)


def refusal(problem: Problem) -> Response:
    """The problem as OpenAI's clients expect it."""
    status, code = _theirs(problem.status, problem.code)
    param = problem.errors[0].field if problem.errors else None
    return Response(
        _error(status, code, problem.detail, param).model_dump_json(),
        status_code=status,
        headers=problem.headers,
        media_type="application/json",
    )


def _theirs(status: int, code: str) -> tuple[int, str]:
    """Status and code that OpenAI has for the same."""
    if code == ContentFiltered.code:
        return 400, "content_filter"  # the caller's mistake, as there: a client would ask again after a 5xx
    # Their clients take 422 for one mistake among others; for them all are 400.
    return 400 if status == 422 else status, code


def _error(status: int, code: str, text: str, param: str | None = None) -> CompletionErrorDocument:
    kind = TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return CompletionErrorDocument(error=CompletionError(message=text, type=kind, param=param, code=code))


@router.get("/models")
async def models(caller: MayChatSomewhere, edge: TheEdge) -> ModelList:
    """The sites you may ask: each is a model."""
    return ModelList(data=tuple(Model(id=site) for site in edge.settings.sites if _may(caller, site)))


@router.get("/models/{model}")
async def model(model: Annotated[SiteId, Path()], caller: MayChatSomewhere, edge: TheEdge) -> Model:
    """One of them."""
    _known(edge, caller, model)
    return Model(id=model)


@router.post(
    "/chat/completions",
    response_model=Completion,
    openapi_extra=request_body(CompletionRequest),
    responses={
        200: {
            "description": "The whole answer; with `stream`, chunks and at last `data: [DONE]`.",
            "content": {"text/event-stream": {"schema": {"$ref": "#/components/schemas/CompletionChunk"}}},
        }
    },
)
async def complete(caller: MayChatSomewhere, edge: TheEdge, request: Request) -> Response:
    """Ask a site as if it were one of OpenAI's models; what its answer stands on is in `sources` and `citations`."""
    order = parse(CompletionRequest, await read_body(request, BODY_LIMIT))
    _known(edge, caller, order.model)
    with edge.admit(order.model, request, caller, Asked(_last(order.messages), order.lang)):
        return await _completed(order, caller, edge)


def _last(messages: tuple[ChatMessage, ...]) -> str:
    """What the user said last; empty: nothing."""
    return next((each.text for each in reversed(messages) if each.role == "user"), "")


async def _completed(order: CompletionRequest, caller: Caller, edge: Edge) -> Response:
    text, history = asked(order.messages, edge.settings.history_messages, answers=caller.visitor is None)
    question = new_question(edge, caller, order.model, text, order.lang).model_copy(update={"history": history})
    deadline = asyncio.get_running_loop().time() + edge.settings.question_timeout
    events = Patient(edge.ports.answers.ask(edge.logged(question)))
    if order.stream:
        await events.begin(FIRST_EVENT_WAIT)
        usage = order.stream_options is not None and order.stream_options.include_usage
        return EventStream(events, _Chunks(edge, question, usage=usage), deadline)
    answer = await whole(events, question, deadline)
    said = CompletionMessage(content=answer.answer, sources=answer.sources, citations=answer.citations)
    completion = Completion(
        id=_id(question),
        created=int(time.time()),
        model=order.model,
        choices=(Choice(message=said, finish_reason=_finish_reason(answer)),),
        usage=_usage(answer.usage),
    )
    return Response(completion.model_dump_json(), media_type="application/json")


def asked(messages: tuple[ChatMessage, ...], kept: int, *, answers: bool) -> tuple[str, tuple[Turn, ...]]:
    """The question and its history, of which `kept` messages are read. System messages are ours to write.

    Args:
        answers: take over what the assistant is said to have answered; else only what was asked.

    Raises:
        Problem: there is no question, or it is too long.
    """
    last = next((n for n in reversed(range(len(messages))) if messages[n].role == "user"), None)
    text = messages[last].text.strip() if last is not None else ""
    if last is None or not text:
        raise Problem(400, "question-empty", "messages: there is no question of the user")
    if len(text) > MAX_QUESTION:
        raise Problem(400, "question-too-long", f"messages: a question has at most {MAX_QUESTION:,} characters")
    said = [m for m in messages[:last] if m.role in ("user", "assistant") and m.text]
    turns = [
        Turn(question=q.text, answer=a.text if answers else "")
        for q, a in pairwise(said)
        if (q.role, a.role) == ("user", "assistant")
    ]
    return text, newest(turns, kept)


class _Chunks:
    """An answer as OpenAI's clients read it, to `[DONE]`.

    Text that was sent cannot be taken back: a new attempt begins below it. Who hangs up has stopped the answer.
    """

    def __init__(self, edge: Edge, question: Question, *, usage: bool) -> None:
        self._edge = edge
        self._question = question
        self._usage = usage
        self._created = int(time.time())
        self._before = 0  # characters of attempts that broke off
        self.written = 0  # characters sent

    def begin(self) -> bytes:
        return self.chunk(Delta(role="assistant", content=""))

    def event(self, followed: Followed) -> bytes:
        match followed.event.event:
            case Token(text=text):
                return self.text(text)
            case Restart() if self.written:
                return self.again()
            case Answered() as answer:
                return b"".join(self.end(answer))
            case Failed(code=code, message=text):
                return self.failed(code, text)
            case Done():
                return b"data: [DONE]\n\n"
        return b""

    def trouble(self, trouble: Trouble) -> bytes:
        return self.failed(trouble, message(trouble, self._question.lang))

    async def left(self) -> None:
        try:
            async with asyncio.timeout(STOP_TIMEOUT):
                await self._edge.ports.answers.stop(self._question.site, self._question.request_id)
        except (Retryable, TimeoutError) as err:
            log.warning("an answer nobody reads goes on", error=str(err))

    def chunk(self, delta: Delta, **more: Any) -> bytes:
        choices = (ChunkChoice(delta=delta, **more),)
        return self._data(self._chunk(choices))

    def text(self, text: str) -> bytes:
        self.written += len(text)
        return self.chunk(Delta(content=text))

    def again(self) -> bytes:
        piece = self.text("\n\n")
        self._before = self.written
        return piece

    def end(self, answer: Answered) -> list[bytes]:
        citations = tuple(
            c.model_copy(update={"start": c.start + self._before, "end": c.end + self._before})
            for c in answer.citations
        )
        delta = Delta(sources=answer.sources, citations=citations)
        last = [self.chunk(delta, finish_reason=_finish_reason(answer))]
        if self._usage:
            last.append(self._data(self._chunk((), usage=_usage(answer.usage))))
        return last

    def failed(self, code: str, text: str) -> bytes:
        return self._data(_error(*_theirs(500, code), text))

    def _chunk(self, choices: tuple[ChunkChoice, ...], usage: CompletionUsage | None = None) -> CompletionChunk:
        question = self._question
        return CompletionChunk(
            id=_id(question), created=self._created, model=question.site, choices=choices, usage=usage
        )

    def _data(self, document: CompletionChunk | CompletionErrorDocument) -> bytes:
        return f"data: {document.model_dump_json(exclude_none=isinstance(document, CompletionChunk))}\n\n".encode()


def _id(question: Question) -> str:
    return f"chatcmpl-{question.request_id}"


def _finish_reason(answer: Answered | ChatResponse) -> FinishReason:
    return "length" if answer.cut else "stop"


def _usage(usage: Usage) -> CompletionUsage:
    total = usage.prompt_tokens + usage.completion_tokens
    return CompletionUsage(
        prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens, total_tokens=total
    )


def _may(caller: Caller, site: str) -> bool:
    return caller.site is None or caller.site == site


def _known(edge: Edge, caller: Caller, site: str) -> None:
    """Raises: Problem: 404, for sites that there are but not for this caller as well."""
    if site not in edge.settings.sites or not _may(caller, site):
        raise Problem(404, "model_not_found", f"the model {site!r} does not exist or you do not have access to it")
