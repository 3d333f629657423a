"""A running system over HTTP, asked as a visitor asks: for evaluations."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from time import perf_counter

import httpx
from pydantic import SecretStr

from adapters.http_gateway import HttpGateway, code_of, parsed
from pipelines.evaluate.dataset import Case
from pipelines.evaluate.measures import DEPTH, Observed, Passage
from pipelines.runtime.errors import Permanent
from schemas.evaluation import ListedRun, NewRun
from schemas.http import ChatResponse, SearchResult
from schemas.query import Source

HITS = 5 * DEPTH  # chunks, so that there are ten pages among them


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
        self._gateway = HttpGateway(f"{url.rstrip('/')}/v1/sites/{site}", key, transport, pause)

    async def __aenter__(self) -> HttpSite:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._gateway.__aexit__()

    async def ask(self, case: Case) -> Observed:
        """In a conversation of its own, which is deleted afterwards.

        Raises:
            Retryable: the gateway is away for a minute. WrongUse: it refuses us.
        """
        conversation: dict[str, str] = {}
        try:
            for question in (*case.history, case.question):
                began = perf_counter()
                response = await self._gateway.send("POST", "/chat", json={"question": question, **conversation})
                ms = (perf_counter() - began) * 1000
                if response.is_error:
                    return Observed(case=case.id, at=datetime.now(UTC), ms=ms, failed=code_of(response))
                told = parsed(ChatResponse, response)
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
            sources=passages_of(told.sources),
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
        body = {"content": run.model_dump_json(), "headers": {"Content-Type": "application/json"}}
        response = await self._gateway.send("POST", self._runs, **body)
        if response.is_error:
            raise Permanent(f"{self._runs}: {response.status_code} {code_of(response)}")
        return parsed(ListedRun, response)

    async def _found(self, told: ChatResponse) -> tuple[Passage, ...]:
        """Pages by the search alone, as deep as they are measured, each once."""
        mode = "keyword" if told.mode == "keyword" else "hybrid"
        query = {"q": told.rephrased, "mode": mode, "size": str(HITS)}
        response = await self._gateway.send("GET", "/search", params=query)
        if response.is_error:
            return ()
        pages = dict.fromkeys((hit.page_id, hit.lang) for hit in parsed(SearchResult, response).hits)
        return tuple(Passage(page=page, lang=lang) for page, lang in list(pages)[:DEPTH])

    async def _forget(self, conversation: str) -> None:
        """What is asked for an evaluation need not be kept; where it cannot be deleted it grows old as others do."""
        await self._gateway.once("DELETE", f"/conversations/{conversation}")


def passages_of(sources: tuple[Source, ...]) -> tuple[Passage, ...]:
    """With their whole texts: a judge reads what the answer was written from."""
    return tuple(Passage(page=each.page_id, lang=each.lang, text=each.text, cited=each.cited) for each in sources)
