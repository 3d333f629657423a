"""What `pagewire eval run --judge` asks of a judge, which decides nothing; `eval calibrate`: it beside people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.output import Bars, Json, err, out, print_json, table
from pipelines.evaluate.comparison import WHOLE
from pipelines.evaluate.dataset import Dataset, load_dataset
from pipelines.evaluate.evaluator import AsyncEvaluator
from pipelines.evaluate.judged.agreement import FEWEST_OF_A_KIND, Interval
from pipelines.evaluate.judged.judge import BudgetSpent, EvaluationJudge, JudgingBudget
from pipelines.evaluate.judged.measure import JudgedMeasure, applying, key, tasks
from pipelines.evaluate.judged.report import Advice, Judged, advice, judged
from pipelines.evaluate.judged.trust import (
    BAR,
    FIGURE,
    Agreement,
    Trusted,
    judge_of,
    load_labels,
    measure_of,
    sheet,
    trusted,
)
from pipelines.evaluate.run import Run, askable
from pipelines.runtime.errors import WrongUse
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


SHEET = 100  # answers to label: rates within about a tenth


def judge_agreement(
    run: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, help="File of a run that `eval run --judge` has judged.")
    ],
    dataset: Annotated[Path, typer.Option(exists=True, help="Dataset of the run.")],
    labels: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="What people say: CSV, YAML or NDJSON of {case, right}."),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option("--sheet", dir_okay=False, help="Write a CSV file of answers by chance, for people to label."),
    ] = None,
    size: Annotated[int, typer.Option(min=1, help="Answers in the sheet.")] = SHEET,
    judge: Annotated[
        str | None, typer.Option(help="Model that judged; needed where several have judged the run.")
    ] = None,
    figure: Annotated[str, typer.Option(help="Judged figure that is held against the labels.")] = FIGURE,
    bar: Annotated[float, typer.Option(min=0, max=1, help="The judge says right from here on.")] = BAR,
    json: Json = False,
) -> None:
    """Say how far a judge agrees with people, in all and by language.

    First write a sheet and let people fill in its last column, without seeing the judge's verdicts; then name it.

    Example: pagewire eval calibrate live.ndjson --dataset town.yaml --sheet labels.csv --size 100

    Example: pagewire eval calibrate live.ndjson --dataset town.yaml --labels labels.csv
    """
    cases, judged = load_dataset(dataset), Run.read(run)
    judged.check(cases)
    measure = measure_of(figure)
    if to is None and labels is None:
        raise WrongUse("name a file: --labels that people filled in, or --sheet to write for them")
    if to is not None:
        if to.exists():
            raise WrongUse(f"{to}: is there already, and may be filled in; name another file")
        some = applying(askable(cases, judged.head.site), judged, measure)
        to.write_text(sheet(some, judged.observed, size), encoding="utf-8")
        err.print(f"{min(size, len(some))} answers to label in {to}", markup=False, soft_wrap=True)
    if labels is None:
        return
    name = judge_of(judged, measure, judge)
    found = trusted(cases, judged, load_labels(labels), name, figure, bar)
    if json:
        print_json(found)
    else:
        print_trusted(found)


def print_trusted(found: Trusted) -> None:
    """How far the judge may be trusted."""
    whole = next(iter(found.groups.values()))
    asked = f"{found.figure} by {found.judge}, right from {found.bar:g} on"
    out.print(f"{asked}: judged {found.judged:,} of {found.of:,}\n", markup=False, soft_wrap=True)
    columns = ("of", "labels#", "people: right#", "judge: right#", "kappa#", "true positives#", "true negatives#")
    out.print(table(columns, [_line(name, group) for name, group in found.groups.items()]))
    out.print()
    shares = [
        (name, group.judged, *(_range(each) for each in (group.judged_right, group.people_right)))
        for name, group in found.groups.items()
    ]
    out.print(table(("right, of", "judged#", "by the judge#", "by labels#"), shares))
    out.print()
    if found.constancy is not None:
        out.print(f"says the same of the same answer {found.constancy:.1%} of the time ({found.repeated:,} answers)")
    if found.other_answers:
        out.print(f"[yellow]set aside[/]: {found.other_answers:,} labels of answers that this run does not have")
    if found.without_verdict:
        out.print(f"[yellow]set aside[/]: {found.without_verdict:,} labels of answers without a verdict")
    out.print(_worth(whole), markup=False, soft_wrap=True)


def _line(name: str, group: Agreement) -> tuple[object, ...]:
    rates = (group.people_right, group.judge_right)
    intervals = (group.kappa, group.true_positives, group.true_negatives)
    shown = [f"{each.value:.3f}" if each else "" for each in rates]
    return (name, group.counts.labels, *shown, *(_range(each) for each in intervals))


def _range(found: Interval | None) -> str:
    return f"{found.value:.3f} ({found.low:.3f} to {found.high:.3f})" if found else ""


def _worth(whole: Agreement) -> str:
    match whole.trust:
        case "too few labels":
            right, wrong = whole.counts.right, whole.counts.labels - whole.counts.right
            return (
                f"too few labels to say: {right} right and {wrong} wrong, and it takes {FEWEST_OF_A_KIND} of each at "
                "least"
            )
        case "not to be trusted":
            return "not to be trusted: it agrees with people hardly more than chance; take what labels say"
        case "with care":
            return "of use, but not as it stands: label some of the answers that hang on it"
        case _:
            return "may be taken as it stands for answers like these"
