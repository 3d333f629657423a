"""Where the verdicts of a run are kept, and which are still to be asked for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from pipelines.evaluate.dataset import Case
from pipelines.evaluate.judged.measure import JudgedMeasure
from pipelines.evaluate.run import Run, VerdictKey
from prompts.loader import load


class JudgingTask(NamedTuple):
    """One measure of one answer, the first or a further time."""

    case: Case
    measure: JudgedMeasure
    repeat: int


def fingerprint(measure: JudgedMeasure) -> str:
    """Of a measure's prompts and numbers; it tells the verdicts of two wordings apart."""
    return _fingerprint(measure.prompts) + measure.variant


@cache
def _fingerprint(prompts: tuple[str, ...]) -> str:
    return "+".join(load(f"evaluate/{name}").fingerprint for name in prompts)


def key(case: Case, measure: JudgedMeasure, judge: str, repeat: int = 0) -> VerdictKey:
    """Where its verdict is kept."""
    return VerdictKey(case.id, measure.name, judge, fingerprint(measure), repeat)


def applying(cases: Sequence[Case], run: Run, measure: JudgedMeasure) -> list[Case]:
    """The cases whose answers a measure can be asked of: all of them are in its denominator."""
    seen = (case for case in cases if case.id in run.observed)
    return [case for case in seen if measure.applies(case, run.observed[case.id])]


def decided(run: Run, one: JudgingTask, judge: str) -> bool:
    """Whether its verdict is there."""
    verdict = run.verdicts.get(key(one.case, one.measure, judge, one.repeat))
    return verdict is not None and verdict.unjudged is None


def tasks(cases: Sequence[Case], run: Run, measures: Sequence[JudgedMeasure], repeats: int) -> list[JudgingTask]:
    """All that a judge is to decide, decided or not."""
    return [
        JudgingTask(case, measure, repeat)
        for measure in measures
        for case in applying(cases, run, measure)
        for repeat in range(repeats)
    ]
