"""What judges said of a run: figures of what was judged, beside how much was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from pipelines.evaluate.comparison import WHOLE
from pipelines.evaluate.dataset import Case, Dataset, Frozen
from pipelines.evaluate.evaluation import MeanFigure, figure
from pipelines.evaluate.judged.measure import JudgedMeasure, applying, fingerprint, key
from pipelines.evaluate.non_inferiority import MARGIN, Paired, paired
from pipelines.evaluate.run import CaseVerdict, Run, askable

NOT_ASKED = "not-asked"  # the budget was spent, or it was stopped


class JudgedFigure(MeanFigure):
    """A mean over judged answers, and between what it would be if all were judged."""

    at_worst: float  # if every answer that was not judged were worth 0
    at_best: float  # if each were worth 1
    rounded: float | None = None  # where each figure from a bound on counts as 1; None: the measure has no bound


class JudgedGroup(Frozen):
    """The figures of a measure over a group of cases: `judged` of `of` that it applies to.

    An answer may be judged and have no figure, as one without claims has no precision: a figure counts its own cases.
    """

    judged: int
    of: int
    figures: Mapping[str, JudgedFigure]


class JudgedPart(Frozen):
    """What one measure says."""

    measure: str
    prompts: str
    unjudged: Mapping[str, int]  # by code
    groups: Mapping[str, JudgedGroup]  # `all` first


class Judged(Frozen):
    """What a judge says of a run. Advisory: nothing is decided by it."""

    judge: str
    parts: tuple[JudgedPart, ...]


@dataclass(frozen=True)
class Advice:
    """A judged figure of the answers that are judged in both runs."""

    measure: str
    figures: Paired
    of: int  # cases that it applies to in both


def judged(dataset: Dataset, run: Run, measures: Sequence[JudgedMeasure], judge: str) -> Judged:
    """The figures of what this judge has said, the first time that it was asked."""
    cases = askable(dataset, run.head.site)
    return Judged(judge=judge, parts=tuple(_part(dataset, cases, run, measure, judge) for measure in measures))


def advice(
    dataset: Dataset,
    live: Run,
    candidate: Run,
    measures: Sequence[JudgedMeasure],
    judge: str,
    margin: float = MARGIN,
) -> list[Advice]:
    """Two runs as the same judge sees them, by the same prompts, over the answers that it judged in both."""
    cases, found = askable(dataset, live.head.site), []
    for measure in measures:
        both = {case.id for case in applying(cases, live, measure)}
        of = [case for case in applying(cases, candidate, measure) if case.id in both]
        pairs = [(_verdict(live, case, measure, judge), _verdict(candidate, case, measure, judge)) for case in of]
        for name in measure.figures:
            values = [(a.figures[name], b.figures[name]) for a, b in pairs if name in a.figures and name in b.figures]
            if values:
                told = paired([before for before, _ in values], [after for _, after in values], margin)
                found.append(Advice(name, told, len(of)))
    return found


def _part(dataset: Dataset, cases: Sequence[Case], run: Run, measure: JudgedMeasure, judge: str) -> JudgedPart:
    verdicts = {case.id: _verdict(run, case, measure, judge) for case in applying(cases, run, measure)}
    members = {WHOLE: frozenset(verdicts), **dataset.groups()}
    groups = {name: _group(verdicts, ids, measure) for name, ids in members.items()}
    return JudgedPart(
        measure=measure.name,
        prompts=fingerprint(measure),
        unjudged=Counter(each.unjudged for each in verdicts.values() if each.unjudged),
        groups={name: group for name, group in groups.items() if group.of or name == WHOLE},
    )


def _group(verdicts: Mapping[str, CaseVerdict], ids: Collection[str], measure: JudgedMeasure) -> JudgedGroup:
    some = [verdict for id, verdict in verdicts.items() if id in ids]
    decided = [verdict for verdict in some if verdict.unjudged is None]
    values = {name: [each.figures[name] for each in decided if name in each.figures] for name in measure.figures}
    lacking = len(some) - len(decided)
    return JudgedGroup(
        judged=len(decided),
        of=len(some),
        figures={name: _figure(found, lacking, measure.rounded_from) for name, found in values.items() if found},
    )


def _figure(values: Sequence[float], lacking: int, rounded_from: float | None) -> JudgedFigure:
    total = len(values) + lacking
    rounded = None if rounded_from is None else fmean(1.0 if each >= rounded_from else each for each in values)
    bounds = {"at_worst": sum(values) / total, "at_best": (sum(values) + lacking) / total, "rounded": rounded}
    return JudgedFigure(**figure(values).model_dump(), **bounds)


def _verdict(run: Run, case: Case, measure: JudgedMeasure, judge: str) -> CaseVerdict:
    where = key(case, measure, judge)
    return run.verdicts.get(where) or CaseVerdict(**where._asdict(), unjudged=NOT_ASKED)
