"""A judge held against people: over all labelled answers, and in each language.

run with verdicts, labels ─▶ answers that have both ─▶ agreement
"""

from __future__ import annotations

import csv
import io
import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from pipelines.evaluate.comparison import WHOLE
from pipelines.evaluate.dataset import NDJSON, YAML, Case, Dataset, Frozen
from pipelines.evaluate.judged.agreement import (
    AgreementCounts,
    Interval,
    Trust,
    constancy,
    kappa,
    share,
    true_negatives,
    true_positives,
    trust,
)
from pipelines.evaluate.judged.measure import JudgedMeasure, applying, asked, key
from pipelines.evaluate.judged.registry import JUDGED
from pipelines.evaluate.measures import Observed
from pipelines.evaluate.run import Run, askable
from pipelines.runtime.errors import WrongUse
from prompts.strict_yaml import load_safe
from schemas.base import problems
from text.spreadsheets import guarded, unguarded

SEED = 7  # of a sheet: the same answers every time
COLUMNS = ("case", "lang", "question", "reference", "answer", "right")


class BadLabels(WrongUse):
    """A file cannot be used as labels."""

    code = "bad-labels"


def _nothing(value: Any) -> Any:
    """An empty cell is no label."""
    return None if isinstance(value, str) and not value.strip() else value


def _as_written(value: Any) -> Any:
    """The value of a cell of a sheet."""
    return unguarded(value) if isinstance(value, str) else value


Cell = Annotated[str, BeforeValidator(_as_written)]


class Label(Frozen):
    """Whether an answer is right, as somebody says who has read it."""

    model_config = ConfigDict(frozen=True, extra="ignore")  # the other columns of a sheet

    case: Cell
    right: Annotated[bool | None, BeforeValidator(_nothing)] = None  # None: not labelled yet
    answer: Cell | None = None  # which was read; a label of another answer does not count


def load_labels(path: Path) -> list[Label]:
    """Those of a CSV, YAML or NDJSON file that say something. Raises: BadLabels: says where and what."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        if path.suffix in NDJSON:
            entries: Any = [json.loads(line) for line in text.splitlines() if line.strip()]
        else:
            entries = load_safe(text) if path.suffix in YAML else list(csv.DictReader(io.StringIO(text)))
    except (OSError, ValueError, yaml.YAMLError, csv.Error) as err:
        raise BadLabels(f"{path}: cannot be read as labels: {err}") from err
    if not isinstance(entries, list):
        raise BadLabels(f"{path}: must be a list of {{case, right}}")
    labels = []
    for number, entry in enumerate(entries, 1):
        try:
            labels.append(Label.model_validate(entry))
        except ValidationError as err:
            raise BadLabels(f"{path}, entry {number}: {problems(err)}") from err
    said = [label for label in labels if label.right is not None]
    twice = sorted(case for case, count in Counter(label.case for label in said).items() if count > 1)
    if twice:
        raise BadLabels(f"{path}: labelled twice: {', '.join(twice[:5])}")
    return said


def sheet(cases: Sequence[Case], observed: Mapping[str, Observed], size: int) -> str:
    """A CSV file of so many answers by chance, to be labelled in its last column.

    What a judge says is not in it. Before what would be a formula stands an apostrophe.
    """
    drawn = random.Random(SEED).sample(list(cases), min(size, len(cases)))  # noqa: S311 - draws a sample
    written = io.StringIO()
    lines = csv.writer(written, lineterminator="\n")
    lines.writerow(COLUMNS)
    for case in drawn:
        cells = (case.id, case.lang or "", asked(case), " | ".join(case.answers), observed[case.id].answer, "")
        lines.writerow(map(guarded, cells))
    return written.getvalue()


def same_answer(label: Label, observed: Observed) -> bool:
    """Whether a label is of this answer. Programs that edit sheets change spaces and line breaks."""
    return label.answer is None or label.answer.split() == observed.answer.split()


FIGURE = "judge right"
BAR = 1.0  # of the figure: from here on the judge says right


class NoVerdicts(WrongUse):
    """The run has no verdicts that could be held against labels."""

    code = "no-verdicts"


class Agreement(BaseModel):
    """Judge and people over a group of answers. Rates are None where there is nothing to take them of."""

    counts: AgreementCounts
    people_right: Interval | None  # of the labelled: the base rate, and what labels alone say
    judge_right: Interval | None  # of the labelled
    kappa: Interval | None
    true_positives: Interval | None
    true_negatives: Interval | None
    judged: int  # answers, also those without a label
    judged_right: Interval | None  # of them: what the judge alone says
    trust: Trust


class Trusted(Frozen):
    """What is known of a judge."""

    judge: str
    figure: str
    bar: float
    judged: int
    of: int
    other_answers: int  # labels that do not count: of answers that the run does not have
    without_verdict: int  # labels that do not count: of answers that are not judged
    constancy: float | None  # share of pairs of repeats that say the same; None: nothing was asked twice
    repeated: int  # answers
    groups: Mapping[str, Agreement]  # `all` first, then the languages


def judge_of(run: Run, measure: JudgedMeasure, name: str | None) -> str:
    """The judge of this name that has judged the run by this measure, or the only one. Raises: NoVerdicts."""
    found = sorted({each.judge for each in run.verdicts.values() if each.measure == measure.name})
    if name in found:
        return str(name)
    if name is None and len(found) == 1:
        return found[0]
    there = f"there are {', '.join(found)}" if found else f"ask one: pagewire eval run ... --judge {measure.name}"
    raise NoVerdicts(f"{run.path}: no {measure.name} by {name or 'one judge alone'}; {there}")


def measure_of(figure: str) -> JudgedMeasure:
    """Which has this figure. Raises: WrongUse."""
    for measure in JUDGED:
        if figure in measure.figures:
            return measure
    known = ", ".join(name for measure in JUDGED for name in measure.figures)
    raise WrongUse(f"no judged figure {figure!r}; there are {known}")


def trusted(
    dataset: Dataset,
    run: Run,
    labels: Sequence[Label],
    judge: str,
    figure: str = FIGURE,
    bar: float = BAR,
) -> Trusted:
    """Hold a judge against people.

    Args:
        labels: of answers drawn from the run by chance, at most one of each.
        bar: of the figure; from here on the judge says right.

    Raises: NoVerdicts: this judge has judged nothing by the prompts of today.
    """
    measure = measure_of(figure)
    cases = applying(askable(dataset, run.head.site), run, measure)
    said = _said(cases, run, measure, judge, figure, bar)
    first = {id: verdicts[0] for id, verdicts in said.items() if 0 in verdicts}
    if not first:
        raise NoVerdicts(f"{run.path}: no {figure} by {judge}, by the prompts of today")
    known = [label for label in labels if label.case in run.observed]
    ours = {label.case: bool(label.right) for label in known if same_answer(label, run.observed[label.case])}
    again = constancy([list(verdicts.values()) for verdicts in said.values()])
    members = {WHOLE: [case.id for case in cases]}
    for case in cases:
        if case.lang:
            members.setdefault(f"lang {case.lang}", []).append(case.id)
    return Trusted(
        judge=judge,
        figure=figure,
        bar=bar,
        judged=len(first),
        of=len(cases),
        other_answers=len(labels) - len(ours),
        without_verdict=sum(id not in first for id in ours),
        constancy=again[0] if again else None,
        repeated=again[1] if again else 0,
        groups={name: agreement(ours, first, ids) for name, ids in members.items()},
    )


def agreement(people: Mapping[str, bool], judge: Mapping[str, bool], ids: Sequence[str]) -> Agreement:
    """Of a group of answers."""
    counts = AgreementCounts.of((people[id], judge[id]) for id in ids if id in people and id in judge)
    judged = [judge[id] for id in ids if id in judge]
    agreed = kappa(counts)
    return Agreement(
        counts=counts,
        people_right=share(counts.right, counts.labels),
        judge_right=share(counts.judged_right, counts.labels),
        kappa=agreed,
        true_positives=true_positives(counts),
        true_negatives=true_negatives(counts),
        judged=len(judged),
        judged_right=share(sum(judged), len(judged)),
        trust=trust(counts, agreed),
    )


def _said(
    cases: Sequence[Case], run: Run, measure: JudgedMeasure, judge: str, figure: str, bar: float
) -> dict[str, dict[int, bool]]:
    """Whether the judge says right, by case and repeat. What it has not decided, or has no figure of, is not there."""
    repeats = 1 + max((each.repeat for each in run.verdicts.values()), default=0)
    found: dict[str, dict[int, bool]] = {}
    for case in cases:
        for repeat in range(repeats):
            verdict = run.verdicts.get(key(case, measure, judge, repeat))
            if verdict is not None and figure in verdict.figures:
                found.setdefault(case.id, {})[repeat] = verdict.figures[figure] >= bar
    return found
