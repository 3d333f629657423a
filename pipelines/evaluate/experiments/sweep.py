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
from datetime import datetime
from pathlib import Path

from pipelines.evaluate.dataset import Case, Dataset, digest
from pipelines.evaluate.evaluator import AT_ONCE, AsyncEvaluator
from pipelines.evaluate.experiments.grid import Arm
from pipelines.evaluate.measures import Observed
from pipelines.evaluate.run import AskCase, Run, RunHead, askable
from pipelines.runtime.errors import PagewireError
from schemas.trial import TrialChoices, TrialSettings

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
    # Each but the first is rephrased; of self-consistency all is asked so many times.
    return (asked * answer + len(case.history)) * (settings.samples or 1)


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

    Raises:
        Retryable, Permanent: as the system. BudgetSpent. BadRun: a file is of something else.
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
