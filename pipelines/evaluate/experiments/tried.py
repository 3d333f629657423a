"""A case asked as trials: the visitor's earlier questions, then its question, under the settings of an arm."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Protocol

from pipelines.evaluate.dataset import Case
from pipelines.evaluate.measures import DEPTH, AnswerPassage, Observed
from pipelines.runtime.errors import WrongUse
from schemas.http import ChatResponse
from schemas.keys import page_key
from schemas.query import Source, Turn
from schemas.trial import MAX_TURNS, TrialResult, TrialSettings

# Errors of settings that this system cannot apply. Every further question would fail the same way.
NOT_TRIED = frozenset(("index-not-tried", "reranker-not-tried", "prompt-not-tried"))
NO_CALL = "check"  # a model step that calls no model


class Trials(Protocol):
    """A site whose questions can be tried (adapters.http_trials, gateway.operators.evaluation_runs)."""

    async def tried(self, question: str, settings: TrialSettings) -> TrialResult:
        """One question under settings. Raises: Retryable: the system is away. Permanent: it refuses us."""
        ...


class TriedSystem:
    """A running system under an arm's settings.

    Args:
        rephrases: whether a model rephrases questions that follow others.
    """

    def __init__(self, trials: Trials, site: str, settings: TrialSettings, *, rephrases: bool) -> None:
        self._trials = trials
        self._site = site
        self._settings = settings
        self._rephrases = rephrases

    async def ask(self, case: Case) -> Observed:
        """Raises: as `Trials.tried`. WrongUse: the settings cannot be applied."""
        history: list[Turn] = []
        calls = prompt = completion = 0
        for question in (*case.history, case.question):
            settings = self._settings.model_copy(update={"history": tuple(history[-MAX_TURNS:])})
            result = await self._trials.tried(question, settings)
            self._check(result)
            answer = result.answer
            if answer is None:
                code = result.error.code if result.error else "internal"
                return Observed(case=case.id, at=datetime.now(UTC), ms=result.ms, failed=code, calls=calls)
            calls += self._calls(answer, follows=bool(history))
            prompt += answer.usage.prompt_tokens
            completion += answer.usage.completion_tokens
            history.append(self._turn(question, answer, result.lang))
        assert answer is not None, "a case has a question"
        found = result.findings.found if result.findings else ()
        return Observed(
            case=case.id,
            at=datetime.now(UTC),
            answer=answer.answer,
            grade=answer.grade,
            found=tuple(AnswerPassage(page=each.page_id, lang=each.lang) for each in found[:DEPTH]),
            sources=passages_of(answer.sources),
            from_memory=self._settings.retriever == "none" and answer.generated_by == "model",
            ms=result.ms,
            timings_ms=answer.timings_ms,
            prompt_tokens=prompt,
            completion_tokens=completion,
            calls=calls,
        )

    def _check(self, result: TrialResult) -> None:
        if result.error is not None and result.error.code in NOT_TRIED:
            raise WrongUse(f"{self._site}: {result.error.code}: {result.error.message}")
        if result.answer is not None and result.findings is None:
            raise WrongUse(f"{self._site}: a worker of an earlier version has answered, which tries nothing out")

    def _calls(self, answer: ChatResponse, *, follows: bool) -> int:
        """The number of model calls: the answer's steps, of each sample, and the rephrasing of a follow-up."""
        steps = sum(step.kind == "model" and step.asked != NO_CALL for step in answer.trace)
        return (steps + (follows and self._rephrases)) * (self._settings.samples or 1)

    def _turn(self, question: str, answer: ChatResponse, lang: str) -> Turn:
        """The turn that a later question carries in its history."""
        pages = dict.fromkeys(page_key(self._site, each.lang, each.page_id) for each in answer.sources if each.cited)
        return Turn(question=question, answer=answer.answer, lang=lang, pages=tuple(pages))


def passages_of(sources: tuple[Source, ...]) -> tuple[AnswerPassage, ...]:
    """The sources with their whole texts, as the answer's writer read them: for a judge."""
    return tuple(AnswerPassage(page=each.page_id, lang=each.lang, text=each.text, cited=each.cited) for each in sources)
