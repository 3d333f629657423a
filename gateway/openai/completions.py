"""OpenAI's chat completions over a site's pages, so that its clients and chat programs work unchanged.

    messages ─▶ last of the user = question, before it = history ─▶ the same log, stages and events as any question
             └▶ what a program asks for itself (templates) ─▶ answered at once: no search, no log, no budget

Nothing is kept here: the client holds the conversation. A program with a key is trusted with what we said in it; a
visitor, who could have us say anything, only with what they asked. A client cannot come back to a broken stream
either, so one that hangs up has stopped its answer, streamed or not.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import pairwise

from fastapi import APIRouter, Request, Response

from gateway.chat.chat import BODY_LIMIT, FIRST_EVENT_WAIT, new_question, stopped, whole
from gateway.chat.sse import EventStream, PeekableEvents
from gateway.edge.auth import Caller
from gateway.edge.bodies import parse, read_body
from gateway.edge.edge import Edge, LanguageHint, MayAskSomewhere, MayListSites, TheEdge
from gateway.edge.openapi import request_body, schema_of
from gateway.edge.problems import MAX_NAME, Trouble, message
from gateway.openai import refusals, templates
from pipelines.conversations.ask import Followed
from pipelines.conversations.turns import newest
from schemas.answer import Answered, Done, Failed, Restart, Token, Usage
from schemas.completion import (
    ChatCompletion,
    Choice,
    ChunkChoice,
    CompletionChunk,
    CompletionDelta,
    CompletionErrorDocument,
    CompletionMessage,
    CompletionModel,
    CompletionRequest,
    CompletionUsage,
    FinishReason,
    ModelList,
    RequestMessage,
)
from schemas.http import ChatResponse
from schemas.query import HISTORY_MESSAGES, MAX_QUESTION, Question, Turn

DONE = b"data: [DONE]\n\n"


def completion(request_id: str, model: str, answer: Answered | ChatResponse) -> ChatCompletion:
    """A whole answer."""
    text = answer.text if isinstance(answer, Answered) else answer.answer
    message = CompletionMessage(content=text, sources=answer.sources, citations=answer.citations)
    return ChatCompletion(
        id=_id(request_id),
        created=int(time.time()),
        model=model,
        choices=(Choice(message=message, finish_reason=_finish_reason(answer)),),
        usage=_usage(answer.usage),
    )


class CompletionChunks:
    """The chunks of one answer. Text that was sent cannot be taken back: a new attempt begins below it.

    Args:
        usage: a last chunk tells what the models counted (`stream_options.include_usage`).
    """

    def __init__(self, request_id: str, model: str, *, usage: bool) -> None:
        self._head = {"id": _id(request_id), "created": int(time.time()), "model": model}
        self._usage = usage
        self._before = 0  # characters of attempts that broke off
        self._written = 0  # characters sent

    def begin(self) -> bytes:
        return self._chunk(CompletionDelta(role="assistant", content=""))

    def text(self, text: str) -> bytes:
        self._written += len(text)
        return self._chunk(CompletionDelta(content=text))

    def again(self) -> bytes:
        """An attempt broke off; nothing, where nothing of it was sent."""
        if not self._written:
            return b""
        piece = self.text("\n\n")
        self._before = self._written
        return piece

    def end(self, answer: Answered) -> bytes:
        citations = tuple(
            c.model_copy(update={"start": c.start + self._before, "end": c.end + self._before})
            for c in answer.citations
        )
        last = self._chunk(CompletionDelta(sources=answer.sources, citations=citations), _finish_reason(answer))
        if self._usage:
            last += event(CompletionChunk(**self._head, choices=(), usage=_usage(answer.usage)))
        return last

    def _chunk(self, delta: CompletionDelta, finish_reason: FinishReason | None = None) -> bytes:
        return event(CompletionChunk(**self._head, choices=(ChunkChoice(delta=delta, finish_reason=finish_reason),)))


def event(document: CompletionChunk | CompletionErrorDocument) -> bytes:
    """One event of the stream."""
    return f"data: {document.model_dump_json()}\n\n".encode()


def _id(request_id: str) -> str:
    return f"chatcmpl-{request_id}"


def _finish_reason(answer: Answered | ChatResponse) -> FinishReason:
    return "length" if answer.cut else "stop"


def _usage(usage: Usage) -> CompletionUsage:
    total = usage.prompt_tokens + usage.completion_tokens
    return CompletionUsage(
        prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens, total_tokens=total
    )


PICTURES_LIMIT = 32 * 1024 * 1024  # bytes of a program's body: pictures come in it, and again with each later question

router = APIRouter(
    prefix="/v1",
    tags=["openai"],
    responses={"default": {"model": CompletionErrorDocument, "description": "Refused or failed; see `error.code`."}},
)


@router.get("/models")
async def models(caller: MayListSites, edge: TheEdge) -> ModelList:
    """The sites you may ask: each is a model."""
    return ModelList(data=tuple(CompletionModel(id=site) for site in edge.settings.sites if _may(caller, site)))


@router.get("/models/{model:path}")
async def model(model: str, caller: MayListSites, edge: TheEdge) -> CompletionModel:
    """One of them."""
    _known(edge, caller, model)
    return CompletionModel(id=model)


@router.post("/chat/completions/", include_in_schema=False)
@router.post(
    "/chat/completions",
    response_model=ChatCompletion,
    openapi_extra=request_body(CompletionRequest),
    responses={
        200: {
            "description": "The whole answer; with `stream`, chunks and at last `data: [DONE]`.",
            "content": {"text/event-stream": {"schema": schema_of(CompletionChunk)}},
        }
    },
)
async def complete(caller: MayAskSomewhere, edge: TheEdge, request: Request) -> Response:
    """Ask a site as if it were one of OpenAI's models; what its answer stands on is in `sources` and `citations`."""
    limit = BODY_LIMIT if caller.visitor else PICTURES_LIMIT
    order = parse(CompletionRequest, await read_body(request, limit))
    _known(edge, caller, order.model)
    errand = templates.errand(order.messages, as_json=_wants_json(order))
    _supported(order, as_json=errand is not None)
    if errand is not None:
        return _at_once(edge.ports.answers.new_id(), order, errand)
    edge.count("ask", request, caller)
    with edge.admit(order.model, caller, LanguageHint(_last(order.messages), order.lang)):
        return await _completed(order, caller, edge, request)


def _last(messages: Sequence[RequestMessage]) -> str:
    """What the user said last; empty: nothing."""
    return templates.asked(next((each.text for each in reversed(messages) if each.role == "user"), "").strip())


def _wants_json(order: CompletionRequest) -> bool:
    return order.response_format is not None and order.response_format.type != "text"


def _supported(order: CompletionRequest, *, as_json: bool) -> None:
    """Raises: Problem: 400, when the answer would lack what its reader counts on. `as_json`: it is JSON."""
    lacking = {
        "n": order.n not in (None, 1),
        "response_format": _wants_json(order) and not as_json,
        "tool_choice": order.tool_choice not in (None, "auto", "none"),
        "function_call": order.function_call not in (None, "auto", "none"),
    }
    for param, lacks in lacking.items():
        if lacks:
            raise refusals.unsupported(param)


def _at_once(request_id: str, order: CompletionRequest, text: str) -> Response:
    """An answer in which no stage has a part."""
    answer = Answered(text=text, citations=(), sources=(), extractive=False)
    if not order.stream:
        return _json(completion(request_id, order.model, answer))
    chunks = _chunks(request_id, order)
    data = chunks.begin() + chunks.text(text) + chunks.end(answer) + DONE
    return Response(data, media_type="text/event-stream")


async def _completed(order: CompletionRequest, caller: Caller, edge: Edge, request: Request) -> Response:
    text, history = asked(order.messages, HISTORY_MESSAGES, answers=caller.visitor is None)
    question = new_question(edge, caller, order.model, text, order.lang)
    question = question.model_copy(update={"history": history, "labels": order.labels or {}})
    deadline = asyncio.get_running_loop().time() + edge.settings.question_timeout
    events = PeekableEvents(edge.ports.answers.ask(edge.logged(question, caller)))
    stop = partial(stopped, edge, caller, question)
    if order.stream:
        await events.begin(FIRST_EVENT_WAIT)
        return EventStream(events, _Telling(question, _chunks(question.request_id, order), stop), deadline)
    answer = await whole(events, question, deadline, request.receive, stop)
    return _json(completion(question.request_id, order.model, answer))


def _chunks(request_id: str, order: CompletionRequest) -> CompletionChunks:
    usage = order.stream_options is not None and bool(order.stream_options.include_usage)
    return CompletionChunks(request_id, order.model, usage=usage)


def _json(whole: ChatCompletion) -> Response:
    return Response(whole.model_dump_json(), media_type="application/json")


def asked(messages: Sequence[RequestMessage], kept: int, *, answers: bool) -> tuple[str, tuple[Turn, ...]]:
    """The question and its history, of which `kept` messages are read. System messages are ours to write.

    Args:
        answers: take over what the assistant is said to have answered; else only what was asked.

    Raises:
        Problem: there is no question, or it is too long.
    """
    text = _last(messages)
    if not text:
        raise refusals.refused(400, "question-empty", "messages", "The last message of the user has no text to answer.")
    if len(text) > MAX_QUESTION:
        detail = f"The last message of the user has more than {MAX_QUESTION:,} characters of text."
        raise refusals.refused(400, "question-too-long", "messages", detail)
    last = max(n for n, each in enumerate(messages) if each.role == "user")
    said = [m for m in messages[:last] if m.role in ("user", "assistant") and m.text]
    turns = [
        Turn(question=q.text, answer=a.text if answers else "")
        for q, a in pairwise(said)
        if (q.role, a.role) == ("user", "assistant")
    ]
    return text, newest(turns, kept)


class _Telling:
    """Tells an answer to OpenAI's clients, to `[DONE]`. Who hangs up has stopped it."""

    def __init__(self, question: Question, chunks: CompletionChunks, stop: Callable[[], Awaitable[None]]) -> None:
        self._question = question
        self._chunks = chunks
        self._stop = stop

    def begin(self) -> bytes:
        return self._chunks.begin()

    def event(self, followed: Followed) -> bytes:
        match followed.event.event:
            case Token(text=text):
                return self._chunks.text(text)
            case Restart():
                return self._chunks.again()
            case Answered() as answer:
                return self._chunks.end(answer)
            case Failed(code=code, message=text):
                return event(refusals.failed(code, text))
            case Done():
                return DONE
        return b""

    def trouble(self, trouble: Trouble) -> bytes:
        return event(refusals.failed(trouble, message(trouble, self._question.lang)))

    async def reader_left(self) -> None:
        await self._stop()


def _may(caller: Caller, site: str) -> bool:
    return caller.site is None or caller.site == site


def _known(edge: Edge, caller: Caller, site: str) -> None:
    """Raises: Problem: 404, for sites that there are but not for this caller as well."""
    if site not in edge.settings.sites or not _may(caller, site):
        text = f"The model '{site[:MAX_NAME]}' does not exist or you do not have access to it."
        raise refusals.refused(404, "model_not_found", "model", text)
