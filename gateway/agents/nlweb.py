"""NLWeb's `/ask` of a site, a thin face of search and chat: GET and POST, whole or as a stream of messages.

list ─▶ the search of GET /search      summarize, generate ─▶ the question of POST /chat

NLWeb's documentation (nlweb-rest-api.md) names the fields of a result and leaves open how a summary or an answer is
written. Here they are the messages of NLWeb's own server: a stream sends them one by one, a whole answer has all of
them in one object.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response, Security

from gateway.agents.door import MayVisit
from gateway.agents.pages import passages
from gateway.chat.chat import FIRST_EVENT_WAIT, new_question, stopped, whole
from gateway.chat.sse import EventStream, PeekableEvents
from gateway.edge.auth import Caller
from gateway.edge.bodies import parse, read_body
from gateway.edge.edge import Edge, LanguageHint, TheEdge
from gateway.edge.openapi import request_body
from gateway.edge.problems import Trouble, message
from pipelines.conversations.ask import Followed
from pipelines.conversations.turns import newest
from schemas.answer import Answered, Done, Failed
from schemas.base import Lang
from schemas.http import SearchHit
from schemas.nlweb import NlwebAnswer, NlwebMode, NlwebQuery, NlwebResult
from schemas.query import HISTORY_MESSAGES, Question, Source, Turn

BODY_LIMIT = 64 * 1024  # bytes
RESULTS = 10  # at most
PASSAGES = 3 * RESULTS  # that are searched for, since a page may have several
LONGEST_NAME = 100  # characters of a client's name in the log

MayAskNlweb = Annotated[Caller, Security(MayVisit("nlweb", "nlweb"))]
EVENT = {"type": "object", "properties": {"data": {"type": "string", "description": "A message, as JSON."}}}
ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The whole answer; a stream has its parts as messages, each with a `message_type`.",
        "content": {"text/event-stream": {"schema": EVENT}},
    }
}

router = APIRouter(prefix="/v1/sites/{site}", tags=["agents"])
API_VERSION = "0.1"  # of the messages, as NLWeb's own server says
Message = dict[str, Any]  # `message_type` and what it says


@router.get("/ask", response_model=NlwebAnswer, responses=ANSWERS)
async def ask_by_query(
    site: str, caller: MayAskNlweb, edge: TheEdge, request: Request, wanted: Annotated[NlwebQuery, Query()]
) -> Response:
    """NLWeb's `/ask`: pages that fit (`list`), or an answer from them (`summarize`, `generate`)."""
    return await _asked(edge, caller, site, request, wanted)


@router.post("/ask", response_model=NlwebAnswer, responses=ANSWERS, openapi_extra=request_body(NlwebQuery))
async def ask_by_body(site: str, caller: MayAskNlweb, edge: TheEdge, request: Request) -> Response:
    """The same, with the parameters in a JSON object."""
    wanted = parse(NlwebQuery, await read_body(request, BODY_LIMIT))
    return await _asked(edge, caller, site, request, wanted)


async def _asked(edge: Edge, caller: Caller, site: str, request: Request, wanted: NlwebQuery) -> Response:
    query_id = wanted.query_id or edge.ports.answers.new_id()
    if wanted.mode != "list":
        return await _answer(edge, caller, site, request, wanted, query_id)
    edge.count("search", request, caller)
    hits = await edge.ports.search.search(site, wanted.question, kind="hybrid", size=PASSAGES, groups=caller.groups)
    found = listed(hits, site)
    if not wanted.streaming:
        return _json(query_id, [found])
    said = _events(query_id, [_begin(), found, {"message_type": "complete"}])
    return Response(said, media_type=EventStream.media_type)


async def _answer(
    edge: Edge, caller: Caller, site: str, request: Request, wanted: NlwebQuery, query_id: str
) -> Response:
    """Raises: Problem."""
    edge.count("ask", request, caller)
    with edge.admit(site, caller, LanguageHint(wanted.question)):
        history = newest([Turn(question=one, answer="") for one in wanted.earlier], HISTORY_MESSAGES)
        client = request.headers.get("user-agent", "")[:LONGEST_NAME]
        question = new_question(edge, caller, site, wanted.question)
        question = question.model_copy(update={"history": history, "via": "nlweb", "client": client})
        deadline = asyncio.get_running_loop().time() + edge.settings.question_timeout
        events = PeekableEvents(edge.ports.answers.ask(edge.logged(question, caller)))
        stop = partial(stopped, edge, caller, question)
        if wanted.streaming:
            await events.begin(FIRST_EVENT_WAIT)
            return EventStream(events, _Telling(question, wanted, query_id, stop), deadline)
        told = await whole(events, question, deadline, request.receive, stop)
    return _json(query_id, answered(wanted.mode, told.answer, told.sources, site))


class _Telling:
    """Tells an answer in NLWeb's messages. Who hangs up has stopped it."""

    def __init__(
        self, question: Question, wanted: NlwebQuery, query_id: str, stop: Callable[[], Awaitable[None]]
    ) -> None:
        self._question = question
        self._wanted = wanted
        self._events = partial(_events, query_id)
        self._stop = stop

    def begin(self) -> bytes:
        return self._events([_begin()])

    def event(self, followed: Followed) -> bytes:
        match followed.event.event:
            case Answered(text=text, sources=sources):
                return self._events(answered(self._wanted.mode, text, sources, self._question.site))
            case Failed(code=code, message=text):
                return self._events([_error(code, text)])
            case Done():
                return self._events([{"message_type": "complete"}])
        return b""

    def trouble(self, trouble: Trouble) -> bytes:
        return self._events([_error(trouble, message(trouble, self._question.lang)), {"message_type": "complete"}])

    async def reader_left(self) -> None:
        await self._stop()


def _begin() -> Message:
    return {"message_type": "api_version", "api_version": API_VERSION}


def _error(code: str, text: str) -> Message:
    return {"message_type": "error", "code": code, "error": text}


def _events(query_id: str, messages: Iterable[Message]) -> bytes:
    """JSON has no raw line breaks, so one `data` line holds a message."""
    lines = (json.dumps(one | {"query_id": query_id}, ensure_ascii=False) for one in messages)
    return "".join(f"data: {line}\n\n" for line in lines).encode("utf-8", "replace")


def _json(query_id: str, messages: Iterable[Message]) -> Response:
    whole = merged(query_id, messages).model_dump_json(exclude_none=True)
    return Response(whole, media_type="application/json")


def listed(hits: Sequence[SearchHit], site: str) -> Message:
    """The pages that a search found, each once with its best passage, the best first."""
    pages: dict[tuple[str, Lang], SearchHit] = {}
    for hit in hits:
        pages.setdefault((hit.page_id, hit.lang), hit)
    best = {(hit.page_id, hit.lang): hit for hit in reversed(passages(hits))}
    found = [best[place].model_copy(update={"score": hit.score}) for place, hit in pages.items()]
    return _batch([_result(hit, site) for hit in found[:RESULTS]])


def answered(mode: NlwebMode, text: str, sources: Sequence[Source], site: str) -> Iterator[Message]:
    """The messages of an answer: of `generate` with the pages that it cites, of `summarize` with all it was made of.
    The result of a tool is no page."""
    pages: dict[tuple[str, Lang], Source] = {}
    for source in sources:
        if source.kind == "page" and (source.cited or mode == "summarize"):
            pages.setdefault((source.page_id, source.lang), source)
    results = [_result(source, site) for source in pages.values()]
    yield _batch(results)
    if mode == "summarize":
        yield {"message_type": "summary", "message": text}
    else:
        yield {"message_type": "nlws", "answer": text, "items": results}


def merged(query_id: str, messages: Iterable[Message]) -> NlwebAnswer:
    """All messages in one object."""
    said: dict[str, Any] = {"query_id": query_id, "results": []}
    for one in messages:
        rest = {name: value for name, value in one.items() if name != "message_type"}
        if one["message_type"] == "result_batch":
            said["results"] += rest["results"]
        else:
            said[one["message_type"]] = rest
    return NlwebAnswer.model_validate(said)


def _batch(results: Sequence[Message]) -> Message:
    return {"message_type": "result_batch", "results": results}


def _result(found: SearchHit | Source, site: str) -> Message:
    page: Mapping[str, str] = {
        "@context": "https://schema.org",
        "@type": "WebPage",
        "identifier": found.page_id,
        "name": found.title,
        "url": found.url,
        "inLanguage": found.lang,
        "text": found.text,
    }
    return NlwebResult(
        url=found.url,
        name=found.title or found.page_id,
        site=site,
        score=found.score,
        description=found.text,
        schema_object={name: value for name, value in page.items() if value},
    ).model_dump(mode="json")
