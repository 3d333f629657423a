"""What an experiment says: the figures of each arm, and which arms are shown to be better or worse than the base.

grid, arms, runs ─▶ report ─▶ a table (Markdown, HTML: page.py) ─▶ charts by hits and shots, of tokens and time

All of it follows from the grid, the dataset and the answers that are kept, so the same answers make the same report to
the byte. Their times are kept with them: asked anew, on a busy machine, they are others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

from pipelines.evaluate.comparison import GATED, WHOLE, Figures, adjusted, pairs_of
from pipelines.evaluate.dataset import Case, Dataset, Frozen
from pipelines.evaluate.evaluation import BOTH_SIDES, MeanFigure, evaluate
from pipelines.evaluate.experiments.grid import Grid
from pipelines.evaluate.experiments.sweep import PlannedArm
from pipelines.evaluate.measures import measured
from pipelines.evaluate.non_inferiority import ERROR, POWER, chance, lower_bound
from pipelines.evaluate.run import Run, askable
from pipelines.runtime.errors import WrongUse

Verdict = Literal["better", "worse", "not shown"]


@dataclass(frozen=True)
class ArmDifference:
    """A figure of an arm beside that of the base, over the cases that have it in both."""

    arm: str
    measure: str
    cases: int
    base: float
    mean: float
    difference: float  # mean minus base
    low: float  # 95 % interval, of this arm by itself
    high: float
    by_noise: float  # chance of a difference as large, or larger, if there were none
    corrected: float  # the same after Holm's correction
    verdict: Verdict
    needed: int  # cases that show a difference worth knowing, if they differ as much as these; 0: there are enough


def differences(
    base: Figures, arms: Mapping[str, Figures], measures: Sequence[str], worth: float
) -> tuple[ArmDifference, ...]:
    """Of each arm and measure that base and arm have a case of, in the order given; all are corrected together.

    Args:
        base: figures by case and measure.
        worth: the smallest difference that is worth knowing, 0..1.
    """
    pairs = {
        (name, measure): values
        for name, arm in arms.items()
        for measure in measures
        if (values := pairs_of(base, arm, measure))
    }
    found = [_difference(name, measure, values) for (name, measure), values in pairs.items()]
    chances = adjusted({(each.arm, each.measure): each.by_noise for each in found})
    told = []
    for each in found:
        key = each.arm, each.measure
        verdict: Verdict = "not shown"
        if chances[key] <= ERROR:
            verdict = "better" if each.difference > 0 else "worse"
        spread = [after - before for before, after in pairs[key]]
        needed = cases_to_show(spread, worth, len(found))
        told.append(
            replace(
                each,
                corrected=chances[key],
                verdict=verdict,
                needed=needed if verdict == "not shown" and needed > each.cases else 0,
            )
        )
    return tuple(told)


def cases_to_show(spread: Sequence[float], worth: float, looked_at: int) -> int:
    """Cases by which a difference of `worth` is shown four times of five, if the cases differ as much as these.

    n = ((z_error + z_power) / worth)² variance (Julious, 2004), both sides, with the error shared by all that are
    looked at, as the strictest step of Holm's correction has it. Not below the cases that could show it if each that
    differs were won: where hardly any case differs, the variance promises too much.
    """
    error = ERROR / looked_at
    z = NormalDist().inv_cdf(1 - error / 2) + NormalDist().inv_cdf(POWER)
    by_variance = (z / worth) ** 2 * float(np.var(np.asarray(spread, dtype=float)))
    return max(math.ceil(by_variance), math.ceil(math.log2(2 / error) / worth))


def _difference(arm: str, measure: str, values: Sequence[tuple[float, float]]) -> ArmDifference:
    before, after = np.asarray(values, dtype=float).T
    spread = after - before
    # As good as these if there were none, and as bad: on either side half of what is put up with.
    by_noise = min(1.0, 2 * min(chance(spread, 0.0), chance(-spread, 0.0)))
    return ArmDifference(
        arm=arm,
        measure=measure,
        cases=len(values),
        base=float(before.mean()),
        mean=float(after.mean()),
        difference=float(spread.mean()),
        low=lower_bound(spread, BOTH_SIDES),
        high=-lower_bound(-spread, BOTH_SIDES),
        by_noise=by_noise,
        corrected=1.0,
        verdict="not shown",
        needed=0,
    )


class NothingAsked(WrongUse):
    """There is nothing to report of."""

    code = "nothing-asked"


class ArmReport(Frozen):
    """What came of an arm."""

    name: str
    varied: Mapping[str, Any]
    asked: int
    failed: Mapping[str, int]
    figures: Mapping[str, MeanFigure]  # of all cases, by measure
    differences: tuple[ArmDifference, ...]  # from the base; none of the base itself, nor of an arm that is not finished
    latency_ms: Mapping[str, float]
    bleu: Mapping[str, float]  # of all answers together
    tokens: float  # read and written for a question, on average
    calls: float  # of the model, likewise

    @property
    def verdict(self) -> str:
        """In a few words."""
        told = [f"{each.verdict} in {each.measure}" for each in self.differences if each.verdict != "not shown"]
        return ", ".join(told) or ("no difference shown" if self.differences else "")


class ExperimentReport(Frozen):
    """What an experiment says."""

    name: str
    site: str
    url: str
    system: str
    dataset: str  # with version and fingerprint
    cases: int
    measures: tuple[str, ...]  # that decide
    worth: float  # the smallest difference that is worth knowing
    vary: Mapping[str, tuple[Any, ...]]
    arms: tuple[ArmReport, ...]  # the base first
    missing: tuple[str, ...]  # arms of which nothing was asked

    @property
    def finished(self) -> bool:
        return not self.missing and all(arm.asked == self.cases for arm in self.arms)

    @property
    def needed(self) -> int:
        """Cases that show a difference worth knowing in each arm; 0: they are enough."""
        return max((each.needed for arm in self.arms for each in arm.differences), default=0)

    @property
    def shown(self) -> tuple[str, ...]:
        """Measures with a column: those that decide, and those of the gate."""
        there = self.arms[0].figures
        return tuple(name for name in dict.fromkeys((*self.measures, *GATED)) if name in there)


def report(grid: Grid, dataset: Dataset, planned: Sequence[PlannedArm]) -> ExperimentReport:
    """Of what is there; of arms that are not finished nothing is compared.

    Raises: NothingAsked: of the base. BadRun: a file is of something else.
    """
    runs = [(each, each.read()) for each in planned]
    head = planned[0].head
    if not runs[0][1].observed:
        raise NothingAsked(f"{grid.name}: nothing was asked yet; `pagewire eval sweep` does")
    cases = askable(dataset, head.site)
    whole = {each.arm.name: _figures(cases, run) for each, run in runs if run.complete}
    base = runs[0][0].arm.name
    others = {name: figures for name, figures in whole.items() if name != base}
    found = differences(whole[base], others, grid.measures, grid.difference) if base in whole else ()
    return ExperimentReport(
        name=grid.name,
        site=grid.site,
        url=head.url,
        system=head.system,
        dataset=dataset.label,
        cases=head.cases,
        measures=grid.measures,
        worth=grid.difference,
        vary=grid.vary,
        arms=tuple(_arm(each, run, dataset, found) for each, run in runs if run.observed),
        missing=tuple(each.arm.name for each, run in runs if not run.observed),
    )


def _figures(cases: Sequence[Case], run: Run) -> dict[str, dict[str, float]]:
    return {case.id: measured(case, run.observed[case.id]) for case in cases}


def _arm(planned: PlannedArm, run: Run, dataset: Dataset, found: Sequence[ArmDifference]) -> ArmReport:
    told = evaluate(dataset, run)
    return ArmReport(
        name=planned.arm.name,
        varied=planned.arm.varied,
        asked=told.asked,
        failed=told.failed,
        figures=told.groups[WHOLE],
        differences=tuple(each for each in found if each.arm == planned.arm.name),
        latency_ms=told.latency_ms,
        bleu=told.bleu,
        tokens=sum(told.tokens.values()) / told.asked,
        calls=sum(each.calls for each in run.observed.values()) / told.asked,
    )


def told(report: ExperimentReport) -> dict[str, Any]:
    """As JSON has it."""
    arms = [
        {**arm.model_dump(mode="json", exclude={"differences"}), "verdict": arm.verdict}
        | {"differences": [asdict(each) for each in arm.differences]}
        for arm in report.arms
    ]
    head = report.model_dump(mode="json", exclude={"arms"})
    return {**head, "finished": report.finished, "needed": report.needed, "arms": arms}
