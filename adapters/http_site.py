"""A running system over HTTP, asked as a visitor asks: for evaluations."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from http import HTTPStatus
from itertools import count
from time import perf_counter
from typing import Any, TypeVar

import httpx
from pydantic import SecretStr, ValidationError

from pipelines.evaluate.dataset import Case
from pipelines.evaluate.measures import DEPTH, Observed, Passage
from pipelines.runtime.errors import Permanent, Retryable, WrongUse
from pipelines.runtime.retry import doubled
from schemas.base import problems
from schemas.evaluation import ListedRun, NewRun
from schemas.http import ChatResponse, SearchResult
from schemas.query import Source

TIMEOUT = 120.0  # seconds for an answer; the system gives up earlier by itself (PAGEWIRE_QUESTION_TIMEOUT)
RETRY_FOR = 60.0  # seconds that a system may be away, as while it is started again
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 10.0  # seconds between two tries
HITS = 5 * DEPTH  # chunks, so that there are ten pages among them
AGAIN = frozenset((HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE))
# Answers of the system that say how a question ended. Everything else above 399 says that we ask wrongly.
ENDED = frozenset((HTTPStatus.INTERNAL_SERVER_ERROR, HTTPStatus.BAD_GATEWAY, HTTPStatus.GATEWAY_TIMEOUT))


Body = TypeVar("Body", ChatResponse, SearchResult, ListedRun)


class HttpSite:
    """One site behind a gateway. Use it as a context manager."""

    def __init__(
        self,
        url: str,
        site: str,
        key: SecretStr,
        transport: httpx.AsyncBaseTransport | None = None,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._runs = f"{url.rstrip('/')}/v1/admin/sites/{site}/evaluations"
        self._client = httpx.AsyncClient(
            base_url=f"{url.rstrip('/')}/v1/sites/{site}",
            headers={"Authorization": f"Bearer {key.get_secret_value()}"},
            timeout=TIMEOUT,
            transport=transport,
        )
        self._pause = pause

    async def __aenter__(self) -> HttpSite:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def ask(self, case: Case) -> Observed:
        """In a conversation of its own, which is deleted afterwards.

        Raises:
            Retryable: the gateway is away for a minute. WrongUse: it refuses us.
        """
        conversation: dict[str, str] = {}
        try:
            for question in (*case.history, case.question):
                began = perf_counter()
                response = await self._send("POST", "/chat", json={"question": question, **conversation})
                ms = (perf_counter() - began) * 1000
                if response.is_error:
                    return Observed(case=case.id, at=datetime.now(UTC), ms=ms, failed=_code(response))
                told = _parsed(ChatResponse, response)
                conversation = {"conversation_id": told.conversation_id}
            found = await self._found(told) if case.pages else ()
        finally:
            if conversation:
                await self._forget(conversation["conversation_id"])
        return Observed(
            case=case.id,
            at=datetime.now(UTC),
            answer=told.answer,
            grade=told.grade,
            found=found,
            sources=_passages(told.sources),
            ms=ms,
            timings_ms=told.timings_ms,
            prompt_tokens=told.usage.prompt_tokens,
            completion_tokens=told.usage.completion_tokens,
        )

    async def publish(self, run: NewRun) -> ListedRun:
        """Let everybody who looks after the site see a run.

        Raises:
            Retryable: the gateway is away for a minute. WrongUse: it refuses us; the key needs the scope `edit`.
        """
        response = await self._send(
            "POST", self._runs, content=run.model_dump_json(), headers={"Content-Type": "application/json"}
        )
        if response.is_error:
            raise Permanent(f"{self._runs}: {response.status_code} {_code(response)}")
        return _parsed(ListedRun, response)

    async def _found(self, told: ChatResponse) -> tuple[Passage, ...]:
        """Pages by the search alone, as deep as they are measured, each once."""
        mode = "keyword" if told.mode == "keyword" else "hybrid"
        query = {"q": told.rephrased, "mode": mode, "size": str(HITS)}
        response = await self._send("GET", "/search", params=query)
        if response.is_error:
            return ()
        pages = dict.fromkeys((hit.page_id, hit.lang) for hit in _parsed(SearchResult, response).hits)
        return tuple(Passage(page=page, lang=lang) for page, lang in list(pages)[:DEPTH])

    async def _forget(self, conversation: str) -> None:
        """What is asked for an evaluation need not be kept; where it cannot be deleted it grows old as others do."""
        try:
            await self._client.delete(f"/conversations/{conversation}")
        except httpx.HTTPError:
            return

    async def _send(self, method: str, path: str, **more: Any) -> httpx.Response:
        waited = 0.0
        for failures in count(1):
            try:
                response = await self._client.request(method, path, **more)
            except httpx.TransportError as err:
                why = f"{type(err).__name__} {err}".rstrip()
            else:
                why = f"{response.status_code} {_code(response) if response.is_error else ''}".rstrip()
                if not response.is_error or response.status_code in ENDED:
                    return response
                if response.status_code not in AGAIN:
                    raise WrongUse(f"{self._client.base_url}: {why}")
            if waited >= RETRY_FOR:
                raise Retryable(f"{self._client.base_url}: {why}; the same command goes on where it stopped")
            pause = doubled(failures, FIRST_PAUSE, LONGEST_PAUSE)
            await self._pause(pause)
            waited += pause
        raise AssertionError("a loop without end")


def _passages(sources: tuple[Source, ...]) -> tuple[Passage, ...]:
    """With their whole texts: a judge reads what the answer was written from."""
    return tuple(Passage(page=each.page_id, lang=each.lang, text=each.text, cited=each.cited) for each in sources)


def _parsed(kind: type[Body], response: httpx.Response) -> Body:
    try:
        return kind.model_validate_json(response.content)
    except ValidationError as err:
        raise Permanent(f"{response.url.copy_with(query=None)}: no answer that we know: {problems(err)}") from err


def _code(response: httpx.Response) -> str:
    """The problem document's code, or the status."""
    try:
        told = response.json()
    except ValueError:
        told = {}
    return str(told.get("code") or response.status_code) if isinstance(told, dict) else str(response.status_code)
