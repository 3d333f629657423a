"""An ordered evaluation: every arm asked, judged and published, within its budgets.

order ─▶ dataset, arms ─▶ plan: cases and calls ─▶ each arm: ask ─▶ judge ─▶ publish ─▶ differences from the base
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from pydantic import ValidationError

from pipelines.evaluate.comparison import WHOLE, Figures
from pipelines.evaluate.dataset import BadDataset, Dataset, corrected_cases, parse_dataset
from pipelines.evaluate.evaluation import evaluate
from pipelines.evaluate.evaluator import AsyncEvaluator
from pipelines.evaluate.experiments.grid import Arm, BadGrid, Grid, arms, can_be_tried
from pipelines.evaluate.experiments.report import differences
from pipelines.evaluate.experiments.sweep import (
    ExperimentBudget,
    ExperimentBudgetSpent,
    Trials,
    TriedSystem,
    WithinBudget,
    most_calls,
)
from pipelines.evaluate.judged.judge import BudgetSpent, EvaluationJudge, JudgeModel, JudgingBudget
from pipelines.evaluate.judged.measure import JudgedMeasure
from pipelines.evaluate.judged.registry import named
from pipelines.evaluate.judged.report import judged
from pipelines.evaluate.measures import measured
from pipelines.evaluate.publication import RunStore, publication, published
from pipelines.evaluate.run import Run, RunHead, askable
from prompts.loader import fence
from schemas.base import problems
from schemas.correction import CorrectionList
from schemas.evaluation import MAX_ARMS, ArmProgress, EvaluationOrder, EvaluationPlan
from schemas.trial import TrialChoices

TOKENS = 10_000_000  # of the judge; its calls are the budget
CASES = 2_000  # as many as a published run has

Note = Callable[[dict[str, object]], None]


@dataclass(frozen=True)
class OrderedEvaluation:
    """An order that can be carried out. `choices`: of the site's trials."""

    order: EvaluationOrder
    dataset: Dataset
    arms: tuple[Arm, ...]
    measures: tuple[JudgedMeasure, ...]
    judge: str  # the model; empty: none is asked
    choices: TrialChoices

    @classmethod
    def of(
        cls,
        order: EvaluationOrder,
        choices: TrialChoices,
        corrections: CorrectionList | None,
        file: Dataset | None,
        judge: str,
    ) -> OrderedEvaluation:
        """Args: file: the dataset that the order names. judge: the model that judges unless the order names one.

        Raises: WrongUse: BadDataset, BadGrid, and what cannot be tried on the site.
        """
        dataset = parse_dataset(order.content, "pasted") if order.content.strip() else file
        if corrections is not None:
            more = corrected_cases(corrections)
            dataset = more if dataset is None else dataset.joined(more)
        if dataset is None or not (found := askable(dataset, choices.site)):
            raise BadDataset("no case that can be asked of this site at any time")
        if len(found) > CASES:
            raise BadDataset(f"{len(found):,} cases; a gateway asks {CASES:,} at most, `pagewire eval run` any number")
        measures = named(order.judge, order.numbers)
        model = (order.judge_model or judge) if measures else ""
        if measures and not model:
            raise BadGrid("judge: no model is set to judge")
        made = _arms(order, choices.site)
        can_be_tried(made, choices)
        return cls(order, dataset, made, measures, model, choices)

    @property
    def plan(self) -> EvaluationPlan:
        cases = askable(self.dataset, self.choices.site)
        asked = sum(1 + len(case.history) for case in cases)
        judging = sum(measure.calls for measure in self.measures) * len(cases) * len(self.arms)
        return EvaluationPlan(
            dataset=self.dataset.label,
            cases=len(cases),
            arms=tuple(arm.name for arm in self.arms),
            questions=asked * len(self.arms),
            calls=sum(most_calls(case, arm.settings, self.choices) for arm in self.arms for case in cases),
            judge=self.judge,
            judge_calls=judging,
        )


def _arms(order: EvaluationOrder, site: str) -> tuple[Arm, ...]:
    if "prompt" in {*order.base, *order.vary}:
        raise BadGrid("prompt: it is a file beside a grid; try prompts with `pagewire eval sweep`")
    try:
        grid = Grid(
            name="ordered", site=site, dataset=Path(), base=order.base, vary=order.vary, measures=order.measures
        )
    except ValidationError as err:
        raise BadGrid(problems(err)) from err
    made = arms(grid, Path(), fewest=1)
    if len(made) > MAX_ARMS:
        raise BadGrid(f"{len(made)} arms; a gateway asks {MAX_ARMS} at most, `pagewire eval sweep` 200")
    return made


@dataclass
class OrderedWork:
    """Carries an order out.

    Args:
        url: of the gateway, for the published runs.
        by: who ordered it.
        note: takes what has changed in the run.
    """

    ordered: OrderedEvaluation
    trials: Trials
    model: JudgeModel | None
    runs: RunStore
    url: str
    by: str
    now: Callable[[], datetime]
    note: Note
    _progress: list[ArmProgress] = field(default_factory=list)
    _figures: dict[str, Figures] = field(default_factory=dict)

    async def done(self) -> dict[str, object]:
        """The end of the run. Raises: Retryable, Permanent: the system, or the store."""
        order, arms_ = self.ordered.order, self.ordered.arms
        self._progress = [ArmProgress(name=arm.name) for arm in arms_]
        budget, judging = ExperimentBudget(calls=order.calls), JudgingBudget(order.judge_calls, TOKENS)
        spent = ""
        for at, arm in enumerate(arms_):
            spent = await self._arm(at, arm, budget, judging) or spent
            if spent == "calls":
                break
        self._compare()
        return {**self._counted(budget, judging), "spent": spent, "step": "", "arm": ""}

    async def _arm(self, at: int, arm: Arm, budget: ExperimentBudget, judging: JudgingBudget) -> str:
        """Returns: the budget that was spent, if one was."""
        ordered, site, begun, spent = self.ordered, self.ordered.choices.site, self.now(), ""
        cases = askable(ordered.dataset, site)
        run = Run.in_memory(RunHead.of(ordered.dataset, site, self.url, begun))
        ask = TriedSystem(self.trials, site, arm.settings, rephrases=bool(ordered.choices.models)).ask
        within = WithinBudget(ask, arm.settings, ordered.choices, budget)

        def noted(step: str, done: int, total: int) -> None:
            self.note({**self._counted(budget, judging), "step": step, "arm": arm.name, "done": done, "total": total})

        judges = []
        if self.model is not None:
            word = fence(f"{begun.isoformat()} {run.head.fingerprint}")
            judges = [EvaluationJudge(self.model, ordered.judge, judging, word)]
        evaluator = AsyncEvaluator(ordered.measures, judges, ordered.order.at_once)
        with run:
            try:
                await evaluator.ask(cases, within.ask, run, lambda done: noted("asking", done, len(cases)))
            except ExperimentBudgetSpent:
                spent = "calls"
            if judges and run.observed:
                why = await evaluator.judge(cases, run, lambda done, of: noted("judging", done, of))
                spent = spent or ("judge_calls" if why == BudgetSpent.code else "")
        if run.observed:
            await self._publish(at, arm, run)
        return spent

    async def _publish(self, at: int, arm: Arm, run: Run) -> None:
        ordered = self.ordered
        report = evaluate(ordered.dataset, run)
        said = judged(ordered.dataset, run, ordered.measures, ordered.judge) if self.model is not None else None
        note = ": ".join(filter(None, [ordered.order.note, arm.name if len(ordered.arms) > 1 else ""]))
        new = publication(ordered.dataset, run, report, note[:500], said)
        kept = published(new, ordered.choices.site, self.by, self.now())
        await self.runs.put(kept)
        means = {name: figure.mean for name, figure in report.groups.get(WHOLE, {}).items()}
        self._progress[at] = ArmProgress(name=arm.name, asked=report.asked, run=kept.id, figures=means)
        if run.complete:
            cases = askable(ordered.dataset, ordered.choices.site)
            self._figures[arm.name] = {case.id: measured(case, run.observed[case.id]) for case in cases}

    def _compare(self) -> None:
        """Say of each finished arm what is shown about it beside the base, corrected for all of them."""
        base, *others = [arm.name for arm in self.ordered.arms]
        if base not in self._figures:
            return
        finished = {name: self._figures[name] for name in others if name in self._figures}
        found = differences(self._figures[base], finished, self.ordered.order.measures, 0.05)
        for at, each in enumerate(self._progress):
            shown = [f"{one.verdict} in {one.measure}" for one in found
                     if one.arm == each.name and one.verdict != "not shown"]  # fmt: skip
            self._progress[at] = each.model_copy(update={"verdict": ", ".join(shown)})

    def _counted(self, budget: ExperimentBudget, judging: JudgingBudget) -> dict[str, object]:
        return {"calls": budget.called, "judge_calls": judging.asked, "arms": tuple(self._progress)}
