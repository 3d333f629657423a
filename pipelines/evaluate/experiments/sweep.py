"""An experiment under way: each arm is a run of its own, kept under what it hangs on.

arms ─▶ Plan: arm + dataset + system ─▶ answers/SITE-FINGERPRINT.ndjson ─▶ what is there is read, the rest is asked

A file is found again by its fingerprint: after a kill the same command goes on, and another grid that has an arm in
common finds its answers there. When the system is another (its version, settings, prompts, live index), so are the
files; pages that were saved in between make no other system.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from pipelines.evaluate.dataset import Case, Dataset, digest
from pipelines.evaluate.evaluator import AT_ONCE, AsyncEvaluator
from pipelines.evaluate.experiments.grid import Arm
from pipelines.evaluate.measures import DEPTH, AnswerPassage, Observed, passages_of
from pipelines.evaluate.run import AskCase, Run, RunHead, askable
from pipelines.runtime.errors import PagewireError, WrongUse
from schemas.http import ChatResponse
from schemas.keys import page_key
from schemas.query import Turn
from schemas.trial import MAX_TURNS, TrialChoices, TrialResult, TrialSettings

FINGERPRINT = 16  # hexadecimal digits
# Calls of the model that an answer may cost: the rounds of its tools, one more that says that it is done, and the
# answer. One that fails may be asked again, which is counted but not foreseen.
CALLS = {"quote": 0, "plain": 1, "chain-of-thought": 2, "retrieval-gate": 2, "self-ask": 7, "react": 7, "tools": 5}


class ExperimentBudgetSpent(PagewireError):
    """What an experiment may spend is spent; the same command goes on where it stopped."""

    code = "budget-spent"


@dataclass(frozen=True)
class PlannedArm:
    """An arm and where its answers are kept."""

    arm: Arm
    head: RunHead
    path: Path

    def read(self) -> Run:
        """What is there of it; nothing has to be. Raises: BadRun."""
        return Run.read(self.path) if self.path.exists() else Run(self.path, self.head)


@dataclass
class ExperimentBudget:
    """What may be spent. What questions under way may come to is held back until it is known, so that none of them is
    begun that cannot be paid for, and none is dropped that was."""

    calls: int | None = None  # of the model; None: any number
    tokens: int | None = None
    called: int = 0
    used: int = 0
    held: int = 0  # calls of questions under way
    _closed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def open(self, most: int) -> None:
        """Before a question that may cost so many calls; waits for those under way. Raises: ExperimentBudgetSpent."""
        async with self._closed:
            while why := self._too_much(most):
                if not self.held:
                    raise ExperimentBudgetSpent(f"{why}; the same command goes on where it stopped")
                await self._closed.wait()
            self.held += most

    async def close(self, most: int, observed: Observed | None) -> None:
        """After the question: what it cost; None: unknown, so all that was held back is spent."""
        async with self._closed:
            self.held -= most
            self.called += most if observed is None else observed.calls
            self.used += observed.prompt_tokens + observed.completion_tokens if observed is not None else 0
            self._closed.notify_all()

    def _too_much(self, most: int) -> str:
        if not most:
            return ""
        if self.calls is not None and self.called + self.held + most > self.calls:
            return f"of {self.calls:,} calls of the model {self.called:,} are spent, and a question may cost {most}"
        return f"{self.tokens:,} tokens are spent" if self.tokens is not None and self.used >= self.tokens else ""


def plan(
    arms: Sequence[Arm], dataset: Dataset, site: str, url: str, system: str, begun: datetime, to: Path
) -> list[PlannedArm]:
    """Where the answers of each arm are, or will be.

    Args:
        to: folder.
    """
    planned = []
    for arm in arms:
        under = arm.settings.model_dump(mode="json", exclude_defaults=True)
        head = RunHead.of(dataset, site, url, begun).model_copy(update={"under": under, "system": system})
        told = digest([under, dataset.fingerprint, site, url, system])[:FINGERPRINT]
        planned.append(PlannedArm(arm, head, to / f"{site}-{told}.ndjson"))
    return planned


def most_calls(case: Case, settings: TrialSettings, choices: TrialChoices) -> int:
    """Calls of the model that a case may cost, its earlier questions among them."""
    if not choices.models:
        return 0
    strategy = settings.strategy or choices.strategy
    answer = CALLS.get(strategy, max(CALLS.values()))
    if settings.think is not None and strategy != "quote":
        answer += settings.think - (strategy == "chain-of-thought")
    asked = len(case.history) + 1
    # A question of three words or more is rephrased, the first one too; of self-consistency all is asked so many times.
    return asked * (answer + 1) * (settings.samples or 1)


def left(planned: Sequence[PlannedArm], cases: Sequence[Case], choices: TrialChoices) -> tuple[int, int]:
    """Questions that are still to be asked, and the calls that they may cost."""
    questions = calls = 0
    for each in planned:
        run = each.read()
        for case in cases:
            if case.id not in run.observed:
                questions += 1
                calls += most_calls(case, each.arm.settings, choices)
    return questions, calls


async def ask_arms(
    planned: Sequence[PlannedArm],
    dataset: Dataset,
    under: Callable[[TrialSettings], AskCase],
    choices: TrialChoices,
    allowance: ExperimentBudget,
    asked: Callable[[str, int], None] = lambda name, done: None,
    at_once: int = AT_ONCE,
) -> None:
    """Ask what is not there yet, arm by arm, the base first.

    Args:
        asked: told of an arm how many cases are done.

    Raises: Retryable, Permanent: as the system. BudgetSpent. BadRun: a file is of something else.
    """
    for each in planned:
        name = each.arm.name
        cases = askable(dataset, each.head.site)
        within = WithinBudget(under(each.arm.settings), each.arm.settings, choices, allowance)

        def told(done: int, name: str = name) -> None:
            asked(name, done)

        with Run.begin(each.path, each.head) as run:
            await AsyncEvaluator(at_once=at_once).ask(cases, within.ask, run, told)


class WithinBudget:
    """A system within an allowance."""

    def __init__(
        self, ask: AskCase, settings: TrialSettings, choices: TrialChoices, allowance: ExperimentBudget
    ) -> None:
        self._ask = ask
        self._settings = settings
        self._choices = choices
        self._allowance = allowance

    async def ask(self, case: Case) -> Observed:
        most = most_calls(case, self._settings, self._choices)
        await self._allowance.open(most)
        observed = None
        try:
            observed = await self._ask(case)
        finally:
            await self._allowance.close(most, observed)
        return observed


# Errors of settings that this system cannot apply. Every further question would fail the same way.
NOT_TRIED = frozenset(("index-not-tried", "reranker-not-tried", "prompt-not-tried"))
NO_CALL = "check"  # a model step that calls no model
EXPANDED = "expand"  # a rephrasing that is a step of the trace


class Trials(Protocol):
    """A site whose questions can be tried (adapters.http_site, gateway.operators.evaluation_runs)."""

    async def tried(self, question: str, settings: TrialSettings) -> TrialResult:
        """One question under settings. Raises: Retryable: the system is away. Permanent: it refuses us."""


class TriedSystem:
    """A running system under an arm's settings.

    Args:
        rephrases: whether a model rephrases questions.
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
        """The number of model calls: the answer's steps and the rephrasing, of each sample."""
        steps = [step.asked for step in answer.trace if step.kind == "model" and step.asked != NO_CALL]
        # A word or two that nothing comes before are looked up as they are.
        rephrased = self._rephrases and (answer.mode == "semantic" or follows) and EXPANDED not in steps
        return (len(steps) + rephrased) * (self._settings.samples or 1)

    def _turn(self, question: str, answer: ChatResponse, lang: str) -> Turn:
        """The turn that a later question carries in its history."""
        pages = dict.fromkeys(page_key(self._site, each.lang, each.page_id) for each in answer.sources if each.cited)
        return Turn(question=question, answer=answer.answer, lang=lang, pages=tuple(pages))
