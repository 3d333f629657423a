"""The report of a run: its figures with their intervals, for all cases, for each language and for each tag."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import numpy as np

from pipelines.evaluate.comparison import WHOLE, Comparison, compare
from pipelines.evaluate.dataset import Case, Dataset, Frozen
from pipelines.evaluate.measures import Observed, measured
from pipelines.evaluate.non_inferiority import lower_bound
from pipelines.evaluate.run import BadRun, Run, RunHead, askable
from text.markdown import plain


def auroc(answerable: Sequence[float], unanswerable: Sequence[float]) -> float | None:
    """Chance that a question that can be answered scores higher than one that cannot; a tie is half of it.

    The area under the receiver operating characteristic (Hanley and McNeil, 1982). None where one side is empty.
    """
    if not answerable or not unanswerable:
        return None
    able, unable = np.asarray(answerable, dtype=float), np.sort(np.asarray(unanswerable, dtype=float))
    below, not_above = np.searchsorted(unable, able, "left"), np.searchsorted(unable, able, "right")
    return float((below + not_above).mean() / (2 * len(unable)))


@dataclass(frozen=True)
class ReportLine:
    """One line of the report; `failure` is empty where it passed."""

    group: str
    name: str
    failure: str = ""
    seconds: float = 0.0


def junit(suite: str, tests: list[ReportLine]) -> str:
    """The document, ending with a line break."""
    failures = sum(bool(test.failure) for test in tests)
    counts = {"tests": str(len(tests)), "failures": str(failures)}
    root = Element("testsuites", counts)
    inner = SubElement(root, "testsuite", {"name": suite, **counts, "errors": "0", "skipped": "0"})
    for test in tests:
        shown = {"classname": test.group, "name": test.name, "time": f"{test.seconds:.3f}"}
        element = SubElement(inner, "testcase", shown)
        if test.failure:
            SubElement(element, "failure", {"message": test.failure}).text = test.failure
    indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + tostring(root, encoding="unicode") + "\n"


BOTH_SIDES = 0.025  # chance that the true mean is below the interval, and above it
BLEU_ORDERS = (1, 2, 3, 4)
HARDEST_GRADE = 5  # of the gate: nothing to answer from


class MeanFigure(Frozen):
    """A mean over cases, with its 95 % interval."""

    cases: int
    mean: float
    low: float
    high: float


class Refusals(Frozen):
    """Whether it knows what it cannot answer."""

    auroc: float | None  # of the gate's grade
    false_refusals: MeanFigure | None  # share of what can be answered
    false_answers: MeanFigure | None  # share of what cannot


class Evaluation(Frozen):
    """What a run says."""

    run: RunHead
    asked: int
    failed: Mapping[str, int]  # by code
    groups: Mapping[str, Mapping[str, MeanFigure]]  # by group and measure; the group `all` first
    refusals: Refusals
    bleu: Mapping[str, float]  # BLEU-1 to BLEU-4, 0..1; empty: no reference answers, or sacrebleu is not installed
    latency_ms: Mapping[str, float]  # to the whole answer: p50, p95, most
    stages_ms: Mapping[str, float]  # means
    tokens: Mapping[str, int]


def evaluate(dataset: Dataset, run: Run) -> Evaluation:
    """Raises: BadRun: it is not of this dataset, or has asked nothing."""
    run.check(dataset)
    cases = _asked(dataset, run)
    if not cases:
        raise BadRun(f"{run.path}: no case was asked")
    seen = [run.observed[case.id] for case in cases]
    figures = {case.id: measured(case, run.observed[case.id]) for case in cases}
    members = {WHOLE: frozenset(figures), **dataset.groups()}
    return Evaluation(
        run=run.head,
        asked=len(cases),
        failed=Counter(each.failed for each in seen if each.failed),
        groups={name: found for name, ids in members.items() if (found := _means(figures, ids))},
        refusals=_refusals(cases, run.observed),
        bleu=bleu(cases, run.observed),
        latency_ms=_latency(seen),
        stages_ms=_stages(seen),
        tokens={
            "prompt": sum(each.prompt_tokens for each in seen),
            "completion": sum(each.completion_tokens for each in seen),
        },
    )


def against(dataset: Dataset, live: Run, candidate: Run, margin: float, measures: Sequence[str]) -> Comparison:
    """Compare two runs of a dataset. Raises: BadRun: one is of another dataset or not complete. NothingToCompare."""
    for run in (live, candidate):
        run.check(dataset)
        if not run.complete:
            raise BadRun(f"{run.path}: {len(run.observed)} of {run.head.cases} cases are asked; run it to its end")
    before, after = (
        {case.id: measured(case, run.observed[case.id]) for case in _asked(dataset, run)} for run in (live, candidate)
    )
    return compare(before, after, dataset.groups(), margin, measures)


def _asked(dataset: Dataset, run: Run) -> list[Case]:
    return [case for case in askable(dataset, run.head.site) if case.id in run.observed]


def _means(figures: Mapping[str, Mapping[str, float]], ids: Collection[str]) -> dict[str, MeanFigure]:
    values: dict[str, list[float]] = {}
    for id, found in figures.items():
        if id in ids:
            for name, value in found.items():
                values.setdefault(name, []).append(value)
    return {name: figure(some) for name, some in values.items()}


def figure(values: Sequence[float]) -> MeanFigure:
    """Of values between 0 and 1, at least one. For those that are 0 or 1 the interval is Clopper and Pearson's."""
    spread = 2 * np.asarray(values, dtype=float) - 1  # what `lower_bound` is about: from -1 to 1
    low, high = lower_bound(spread, BOTH_SIDES), -lower_bound(-spread, BOTH_SIDES)
    return MeanFigure(cases=len(values), mean=float(np.mean(values)), low=(low + 1) / 2, high=(high + 1) / 2)


def _refusals(cases: Sequence[Case], observed: Mapping[str, Observed]) -> Refusals:
    sides = [[observed[case.id] for case in cases if case.expect == kind] for kind in ("answer", "refuse")]
    grades = [[float(HARDEST_GRADE - each.grade) for each in side if each.grade is not None] for side in sides]
    refused = [float(each.refused) for each in sides[0]]
    answered = [float(not each.refused) for each in sides[1]]
    return Refusals(
        auroc=auroc(*grades),
        false_refusals=figure(refused) if refused else None,
        false_answers=figure(answered) if answered else None,
    )


def bleu(cases: Sequence[Case], observed: Mapping[str, Observed]) -> dict[str, float]:
    """Corpus BLEU (Papineni et al., 2002) of all answers to cases with reference answers, as sacrebleu counts it: with
    n-grams of up to one word, up to two, three and four."""
    if find_spec("sacrebleu") is None:
        return {}
    from sacrebleu import BLEU

    wanted = [case for case in cases if case.answers]
    if not wanted:
        return {}
    seen = [observed[case.id] for case in wanted]
    said = ["" if each.refused else plain(each.answer) for each in seen]
    most = max(len(case.answers) for case in wanted)
    # One list for the first answers, one for the second, and so on; those with fewer say None, as sacrebleu wants it.
    references: list[list[Any]] = [
        [plain(case.answers[place]) if place < len(case.answers) else None for case in wanted] for place in range(most)
    ]
    counted = {order: BLEU(max_ngram_order=order).corpus_score(said, references) for order in BLEU_ORDERS}
    return {f"BLEU-{order}": float(each.score) / 100 for order, each in counted.items()}


def _latency(seen: Sequence[Observed]) -> dict[str, float]:
    ms = [each.ms for each in seen]
    return {"p50": float(np.percentile(ms, 50)), "p95": float(np.percentile(ms, 95)), "most": max(ms)}


def _stages(seen: Sequence[Observed]) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for each in seen:
        for stage, ms in each.timings_ms.items():
            found.setdefault(stage, []).append(ms)
    return {stage: float(np.mean(some)) for stage, some in sorted(found.items())}
