"""Asks a running system over HTTP: as a visitor does, for evaluations, or through its trials, for experiments."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

import httpx
from pydantic import SecretStr

from adapters.http_gateway import HttpGateway, code_of, parse
from pipelines.evaluate.dataset import Case, Dataset, corrected_cases
from pipelines.evaluate.experiments.sweep import TriedSystem
from pipelines.evaluate.measures import DEPTH, AnswerPassage, Observed, passages_of
from pipelines.evaluate.run import AskCase
from pipelines.runtime.errors import Permanent, Retryable, WrongUse
from schemas.correction import CorrectionList
from schemas.evaluation import ListedRun, NewRun
from schemas.http import ChatResponse
from schemas.query import RANKING
from schemas.trial import TrialChoices, TrialReport, TrialResult, TrialSettings

HITS = 5 * DEPTH  # chunks, so that they come from ten pages


class HttpSite(HttpGateway):
    """One site behind a gateway. Use it as a context manager."""

    def __init__(
        self,
        url: str,
        site: str,
        key: SecretStr,
        transport: httpx.AsyncBaseTransport | None = None,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._admin = f"{url.rstrip('/')}/v1/admin/sites/{site}"
        super().__init__(f"{url.rstrip('/')}/v1/sites/{site}", key, transport, pause)

    async def ask(self, case: Case) -> Observed:
        """Ask without a conversation; a case with a history gets a conversation, which is deleted afterwards.

        Raises:
            Retryable: the gateway is unreachable for a minute. WrongUse: it refuses the request.
        """
        body: dict[str, Any] = {} if case.history else {"keep": False}
        conversation: dict[str, str] = {}
        try:
            for number, question in enumerate((*case.history, case.question)):
                last = number == len(case.history)
                body |= {"question": question, "ranked": HITS if last and case.pages else 0, **conversation}
                began = perf_counter()
                response = await self.send("POST", "/chat", json=body)
                ms = (perf_counter() - began) * 1000
                if response.is_error:
                    return Observed(case=case.id, at=datetime.now(UTC), ms=ms, failed=code_of(response))
                answer = parse(ChatResponse, response)
                if case.history:
                    conversation = {"conversation_id": answer.conversation_id}
        finally:
            if conversation:
                await self._forget(conversation["conversation_id"])
        if case.pages and RANKING not in answer.timings_ms:
            raise WrongUse(f"{response.url}: a worker of an earlier version has answered, which ranks no pages")
        return Observed(
            case=case.id,
            at=datetime.now(UTC),
            answer=answer.answer,
            grade=answer.grade,
            found=tuple(AnswerPassage(page=page.page_id, lang=page.lang) for page in answer.found[:DEPTH]),
            sources=passages_of(answer.sources),
            ms=ms - answer.timings_ms.get(RANKING, 0.0),  # no visitor waits for it
            timings_ms={step: took for step, took in answer.timings_ms.items() if step != RANKING},
            prompt_tokens=answer.usage.prompt_tokens,
            completion_tokens=answer.usage.completion_tokens,
        )

    async def publish(self, run: NewRun) -> ListedRun:
        """Publish a run to the site's operators and editors.

        Raises:
            Retryable: the gateway is unreachable for a minute.
            WrongUse: it refuses the request; the key needs the scope `edit`.
        """
        # Unset fields are left out, so that an older gateway accepts the run.
        body = {"content": run.model_dump_json(exclude_defaults=True), "headers": {"Content-Type": "application/json"}}
        return parse(ListedRun, await self._administer("POST", "evaluations", **body))

    async def corrected(self) -> Dataset:
        """The cases of the site's corrections in force.

        Raises:
            Retryable: the gateway is unreachable for a minute.
            WrongUse: it refuses the request; the key needs the scope `view`.
        """
        return corrected_cases(parse(CorrectionList, await self._administer("GET", "corrections")))

    async def _administer(self, method: str, path: str, **more: Any) -> httpx.Response:
        response = await self.send(method, f"{self._admin}/{path}", **more)
        if response.is_error:
            raise Permanent(f"{self._admin}/{path}: {response.status_code} {code_of(response)}")
        return response

    async def _forget(self, conversation: str) -> None:
        """Delete an evaluation's conversation. One that cannot be deleted expires like any other."""
        await self.send_once("DELETE", f"/conversations/{conversation}")


class HttpTrials(HttpGateway):
    """One site behind a gateway. Use it as a context manager."""

    def __init__(self, url: str, site: str, key: SecretStr, transport: httpx.AsyncBaseTransport | None = None) -> None:
        super().__init__(f"{url.rstrip('/')}/v1/admin/sites/{site}", key, transport)
        self._site = site
        self._rephrases = False

    async def choices(self) -> TrialChoices:
        """The settings that can be tried. Raises: Retryable: unreachable. WrongUse: it refuses us, or is too old."""
        response = await self.send("GET", "/trials")
        if response.is_error:
            raise WrongUse(f"{response.url}: {response.status_code} {code_of(response)}")
        found = parse(TrialChoices, response)
        self._rephrases = bool(found.models)
        return found

    def under(self, settings: TrialSettings) -> AskCase:
        return TriedSystem(self, self._site, settings, rephrases=self._rephrases).ask

    async def tried(self, question: str, settings: TrialSettings) -> TrialResult:
        """One question under settings.

        Raises:
            Retryable: the gateway is unreachable for a minute.
            WrongUse: it refuses the request.
        """
        body = {"question": question, "trials": [settings.model_dump(mode="json", exclude_defaults=True)]}
        response = await self.send("POST", "/trials", json=body)
        if response.is_error:
            raise Retryable(f"{response.url}: {response.status_code} {code_of(response)}")
        [result] = parse(TrialReport, response).trials
        return result
