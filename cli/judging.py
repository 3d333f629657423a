"""What `pagewire eval run --judge` asks of a judge, and how it is printed. It decides nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from cli.bars import Bars
from cli.output import out, table
from pipelines.evaluate.comparison import WHOLE
from pipelines.evaluate.dataset import Dataset
from pipelines.evaluate.evaluator import AsyncEvaluator
from pipelines.evaluate.judged.judge import BudgetSpent, EvaluationJudge, JudgingBudget
from pipelines.evaluate.judged.measure import JudgedMeasure, key, tasks
from pipelines.evaluate.judged.report import Advice, Judged, advice, judged
from pipelines.evaluate.run import Run, askable
from prompts.loader import fence

if TYPE_CHECKING:
    from wiring.settings import Settings

CALLS = 10_000  # about 1,000 answers by all measures
TOKENS = 10_000_000
NO_JUDGE = "no judge: PAGEWIRE_LLM_MODEL names no model; all else is measured without one"


@dataclass(frozen=True)
class Judging:
    """A judge's model and its measures."""

    model: str
    measures: tuple[JudgedMeasure, ...]
    calls: int
    tokens: int
    repeats: int

    def unfinished(self, cases: Dataset, run: Run) -> bool:
        """Whether this judge has begun with a run, and was stopped before it had asked all."""
        work = tasks(askable(cases, run.head.site), run, self.measures, self.repeats)
        wanted = [key(one.case, one.measure, self.model, one.repeat) in run.verdicts for one in work]
        return any(wanted) and not all(wanted)


@dataclass(frozen=True)
class Heard:
    """What the judge said, and what it took."""

    report: Judged
    calls: int
    tokens: int
    stopped: str  # why not all was asked; empty: all was
    advice: tuple[Advice, ...] = ()

    def told(self) -> dict[str, Any]:
        """For `--json`."""
        spent = {"calls": self.calls, "tokens": self.tokens, "stopped": self.stopped or None}
        advised = [asdict(each) for each in self.advice]
        return {**self.report.model_dump(mode="json"), **spent, "advice": advised}


async def hear(
    cases: Dataset, run: Run, judging: Judging, settings: Settings, live: Run | None, margin: float
) -> Heard:
    """Have the answers of a run judged that are not judged yet, and compare them with those of a live one."""
    budget = JudgingBudget(judging.calls, judging.tokens)
    token = fence(f"{run.head.begun.isoformat()} {run.head.fingerprint}")
    from wiring.evaluating import judge_model

    async with judge_model(settings, judging.model) as model:
        judges = [EvaluationJudge(model, judging.model, budget, token) for _ in range(judging.repeats)]
        with run, Bars(transient=True) as bars:
            evaluator = AsyncEvaluator(judging.measures, judges)
            step = partial(bars.step, "judging")
            stopped = await evaluator.judge(askable(cases, run.head.site), run, step)
    told = advice(cases, live, run, judging.measures, judging.model, margin) if live else []
    report = judged(cases, run, judging.measures, judging.model)
    return Heard(report, budget.asked, budget.used, stopped, tuple(told))


def print_heard(heard: Heard) -> None:
    """The figures, how much was judged, and why the rest was not."""
    out.print(f"\njudged by {heard.report.judge}: advisory, decides nothing", markup=False, soft_wrap=True)
    lines: list[Sequence[object]] = []
    for part in heard.report.parts:
        group = part.groups[WHOLE]
        share = f"judged {group.judged:,} of {group.of:,}"
        if not group.figures:
            lines.append((part.measure, share, "", "", "", ""))
        for name, figure in group.figures.items():
            low_high = f"{figure.low:.3f} to {figure.high:.3f}"
            bounds = f"{figure.at_worst:.3f} to {figure.at_best:.3f}" if group.judged < group.of else ""
            lines.append((name, share, figure.cases, f"{figure.mean:.3f}", low_high, bounds))
    out.print(table(("figure", "", "cases#", "mean#", "95 %#", "if all were judged#"), lines))
    for part in heard.report.parts:
        if part.unjudged:
            why = ", ".join(f"{count:,} {code}" for code, count in part.unjudged.items())
            out.print(f"not judged, {part.measure}: {why}", markup=False, soft_wrap=True)
    out.print(f"{heard.calls:,} calls, {heard.tokens:,} tokens", markup=False)
    if heard.stopped:
        more = "; a later run of the same command goes on" if heard.stopped == BudgetSpent.code else ""
        out.print(f"[yellow]stopped[/]: {heard.stopped}{more}")
    if heard.advice:
        lines = [_advice(each) for each in heard.advice]
        out.print()
        out.print(table(("advisory", "", "before#", "now#", "difference#", "90 %#", ""), lines))


def _advice(each: Advice) -> tuple[object, ...]:
    found = each.figures
    figures = (f"{found.live:.3f}", f"{found.candidate:.3f}", f"{found.difference:+.3f}")
    state = "too few cases" if found.state == "undecided" else found.state
    share = f"judged {found.cases:,} of {each.of:,}"
    return (each.measure, share, *figures, f"{found.low:+.3f} to {found.high:+.3f}", state)
