"""Asks a running system over HTTP under other settings, through its trials: for experiments."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Self

import httpx
from pydantic import SecretStr

from adapters.http_gateway import HttpGateway, code_of, parse
from adapters.http_site import passages_of
from pipelines.evaluate.dataset import Case
from pipelines.evaluate.measures import DEPTH, AnswerPassage, Observed
from pipelines.evaluate.run import AskCase
from pipelines.runtime.errors import Retryable, WrongUse
from schemas.http import ChatResponse
from schemas.keys import page_key
from schemas.query import Turn
from schemas.trial import MAX_TURNS, TrialChoices, TrialReport, TrialResult, TrialSettings

# Errors of settings that this system cannot apply. Every further question would fail the same way.
NOT_TRIED = frozenset(("index-not-tried", "reranker-not-tried", "prompt-not-tried"))
NO_CALL = "check"  # a model step that calls no model


class HttpTrials:
    """One site behind a gateway. Use it as a context manager."""

    def __init__(
        self,
        url: str,
        site: str,
        key: SecretStr,
        transport: httpx.AsyncBaseTransport | None = None,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._site = site
        self._gateway = HttpGateway(f"{url.rstrip('/')}/v1/admin/sites/{site}", key, transport, pause)
        self._rephrases = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._gateway.__aexit__()

    async def choices(self) -> TrialChoices:
        """The settings that can be tried. Raises: Retryable: unreachable. WrongUse: it refuses us, or is too old."""
        response = await self._gateway.send("GET", "/trials")
        if response.is_error:
            raise WrongUse(f"{response.url}: {response.status_code} {code_of(response)}")
        found = parse(TrialChoices, response)
        self._rephrases = bool(found.models)
        return found

    def under(self, settings: TrialSettings) -> AskCase:
        return _Under(self, settings).ask

    async def tried(self, question: str, settings: TrialSettings) -> TrialResult:
        """One question under settings.

        Raises:
            Retryable: the gateway is unreachable for a minute.
            WrongUse: it refuses the request, or cannot apply the settings.
        """
        body = {"question": question, "trials": [settings.model_dump(mode="json", exclude_defaults=True)]}
        response = await self._gateway.send("POST", "/trials", json=body)
        if response.is_error:
            raise Retryable(f"{response.url}: {response.status_code} {code_of(response)}")
        [result] = parse(TrialReport, response).trials
        if result.error is not None and result.error.code in NOT_TRIED:
            raise WrongUse(f"{self._site}: {result.error.code}: {result.error.message}")
        if result.answer is not None and result.findings is None:
            raise WrongUse(f"{response.url}: a worker of an earlier version has answered, which tries nothing out")
        return result

    def calls(self, answer: ChatResponse, *, follows: bool) -> int:
        """The number of model calls: the answer's steps, and the rephrasing of a follow-up."""
        steps = sum(step.kind == "model" and step.asked != NO_CALL for step in answer.trace)
        return steps + (follows and self._rephrases)

    def turn(self, question: str, answer: ChatResponse, lang: str) -> Turn:
        """The turn that a later question carries in its history."""
        pages = dict.fromkeys(page_key(self._site, each.lang, each.page_id) for each in answer.sources if each.cited)
        return Turn(question=question, answer=answer.answer, lang=lang, pages=tuple(pages))


class _Under:
    def __init__(self, trials: HttpTrials, settings: TrialSettings) -> None:
        self._trials = trials
        self._settings = settings

    async def ask(self, case: Case) -> Observed:
        """Try the case's earlier questions, then its question, under the same settings.

        Raises:
            as `HttpTrials.tried`.
        """
        history: list[Turn] = []
        calls = prompt = completion = 0
        for question in (*case.history, case.question):
            settings = self._settings.model_copy(update={"history": tuple(history[-MAX_TURNS:])})
            result = await self._trials.tried(question, settings)
            answer = result.answer
            if answer is None:
                code = result.error.code if result.error else "internal"
                return Observed(case=case.id, at=datetime.now(UTC), ms=result.ms, failed=code, calls=calls)
            calls += self._trials.calls(answer, follows=bool(history))
            prompt += answer.usage.prompt_tokens
            completion += answer.usage.completion_tokens
            history.append(self._trials.turn(question, answer, result.lang))
        assert answer is not None, "a case has a question"
        found = result.findings.found if result.findings else ()
        return Observed(
            case=case.id,
            at=datetime.now(UTC),
            answer=answer.answer,
            grade=answer.grade,
            found=tuple(AnswerPassage(page=each.page_id, lang=each.lang) for each in found[:DEPTH]),
            sources=passages_of(answer.sources),
            ms=result.ms,
            timings_ms=answer.timings_ms,
            prompt_tokens=prompt,
            completion_tokens=completion,
            calls=calls,
        )
