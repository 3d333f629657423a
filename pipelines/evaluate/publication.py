"""What is published of a run: its report, of each case what people need to see; and two runs side by side."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher
from typing import Literal, Protocol

from pipelines.evaluate.comparison import WHOLE, Comparison, NothingToCompare, compare
from pipelines.evaluate.dataset import Case, Dataset
from pipelines.evaluate.evaluation import Evaluation
from pipelines.evaluate.judged.report import Judged
from pipelines.evaluate.measures import Observed, measured
from pipelines.evaluate.run import BadRun, Run, askable
from pipelines.runtime.errors import Permanent
from schemas.evaluation import (
    MAX_RESULTS,
    MAX_SHOWN,
    CaseResult,
    JudgedRunFigure,
    ListedRun,
    NewRun,
    PublishedRun,
    RunFigure,
)

MAX_RUNS = 500  # of a site, that are listed


class UnknownRun(Permanent):
    """The site has no published run of this id: it was taken away, or is too old."""

    code = "unknown-run"


class RunStore(Protocol):
    """Keeps published runs (adapters.elastic.system_index). All raise Retryable."""

    async def put(self, run: PublishedRun) -> None:
        """Keep it, in place of the one of its id; readers see it at once."""

    async def of_site(self, site: str, dataset: str | None = None) -> Sequence[ListedRun]:
        """The newest first, at most `MAX_RUNS`; of one dataset, by its name, or all."""

    async def get(self, site: str, id: str) -> PublishedRun | None: ...

    async def remove(self, site: str, id: str) -> bool:
        """False: there is none."""

    async def expire(self, before: Mapping[str, datetime]) -> Mapping[str, int]:
        """Delete those that began earlier than their site's time. Returns: how many, by site."""


ID = 16  # hexadecimal digits
CUT = "…"


def publication(dataset: Dataset, run: Run, report: Evaluation, note: str = "", judged: Judged | None = None) -> NewRun:
    """Of a run and its report. Long answers are cut.

    Args:
        judged: what a judge says of it; None: none was asked.

    Raises: BadRun: it has more cases than can be published.
    """
    cases = [case for case in askable(dataset, run.head.site) if case.id in run.observed]
    if len(cases) > MAX_RESULTS:
        raise BadRun(f"{run.path}: {len(cases):,} cases; at most {MAX_RESULTS:,} can be published")
    head = run.head
    return NewRun(
        dataset=head.dataset,
        version=head.version,
        fingerprint=head.fingerprint,
        url=head.url,
        begun=head.begun,
        cases=head.cases,
        asked=report.asked,
        groups={
            group: {name: RunFigure.model_validate(figure.model_dump()) for name, figure in figures.items()}
            for group, figures in report.groups.items()
        },
        judge=judged.judge if judged else "",
        judged=_figures(judged) if judged else {},
        failed=dict(report.failed),
        latency_ms=dict(report.latency_ms),
        tokens=dict(report.tokens),
        note=note,
        results=tuple(_result(case, run.observed[case.id]) for case in cases),
    )


def _figures(judged: Judged) -> dict[str, dict[str, JudgedRunFigure]]:
    """By group and name, of all measures."""
    found: dict[str, dict[str, JudgedRunFigure]] = {}
    for part in judged.parts:
        for name, group in part.groups.items():
            for figure, told in group.figures.items():
                said = told.model_dump() | {"judged": group.judged, "of": group.of}
                found.setdefault(name, {})[figure] = JudgedRunFigure.model_validate(said)
    return found


def _result(case: Case, observed: Observed) -> CaseResult:
    return CaseResult(
        case=case.id,
        question=case.question,
        lang=case.lang,
        tags=case.tags,
        expect=case.expect,
        pages=case.pages,
        reference=_cut(case.answers[0] if case.answers else ""),
        answer=_cut(observed.answer),
        cited=observed.cited,
        failed=observed.failed,
        figures=measured(case, observed),
    )


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - len(CUT)] + CUT


def published(new: NewRun, site: str, by: str, at: datetime) -> PublishedRun:
    """A run as it is kept. The same run has the same id, however often it is published."""
    said = f"{site} {new.fingerprint} {new.url} {new.begun.isoformat()}"
    told = {"id": hashlib.sha256(said.encode()).hexdigest()[:ID], "site": site, "published_by": by, "published_at": at}
    return PublishedRun.model_validate(new.model_dump() | told)


RIGHT = "right"
Kind = Literal["same", "removed", "added"]
Change = Literal["lost", "gained", "wrong", "other", "same"]
ORDER: tuple[Change, ...] = ("lost", "wrong", "gained", "other", "same")

_WORDS = re.compile(r"\s*\S+|\s+$")


@dataclass(frozen=True)
class AnswerPiece:
    """A stretch of an answer."""

    kind: Kind
    text: str


@dataclass(frozen=True)
class PairedCase:
    """A case in both runs. `change`: of whether it is right; other: only the answer's words differ."""

    before: CaseResult
    after: CaseResult
    change: Change


@dataclass(frozen=True)
class PairedRuns:
    """Two runs. `comparison` None: they are of different datasets, or measure nothing that decides."""

    cases: tuple[PairedCase, ...]  # what got worse first
    comparison: Comparison | None


def is_wrong(result: CaseResult) -> bool:
    """Whether it failed, or is not right, as far as that is measured."""
    return result.failed is not None or result.figures.get(RIGHT, 1.0) < 1


def failures_first(results: Sequence[CaseResult]) -> list[CaseResult]:
    """What failed, then what is not right, then the rest; each in its order."""
    return sorted(results, key=lambda each: (each.failed is None, each.figures.get(RIGHT, 1.0)))


def side_by_side(before: PublishedRun, after: PublishedRun, margin: float) -> PairedRuns:
    """The cases that both have. Takes a moment: some thousand comparisons."""
    known = {each.case: each for each in before.results}
    pairs = [
        PairedCase(known[each.case], each, _change(known[each.case], each))
        for each in after.results
        if each.case in known
    ]
    pairs.sort(key=lambda pair: ORDER.index(pair.change))
    return PairedRuns(tuple(pairs), _comparison(before, after, margin))


def _comparison(before: PublishedRun, after: PublishedRun, margin: float) -> Comparison | None:
    if before.fingerprint != after.fingerprint:
        return None
    live, candidate = ({each.case: each.figures for each in run.results} for run in (before, after))
    groups: dict[str, set[str]] = {}
    for each in after.results:
        for name in [*([f"lang {each.lang}"] if each.lang else []), *(f"tag {tag}" for tag in each.tags)]:
            groups.setdefault(name, set()).add(each.case)
    try:
        return compare(live, candidate, {name: frozenset(ids) for name, ids in sorted(groups.items())}, margin)
    except NothingToCompare:
        return None


def shown_checks(comparison: Comparison) -> list[tuple[str, str, float, float, float, float, str]]:
    """What a table has: group, measure, before, after, the interval of the difference, and the outcome; of languages
    and tags only what stops."""
    return [
        (check.group, check.measure, check.figures.live, check.figures.candidate, check.figures.low, check.figures.high,
         check.figures.state)
        for check in comparison.checks
        if check.group == WHOLE or check.stops
    ]  # fmt: skip


def _change(before: CaseResult, after: CaseResult) -> Change:
    match is_wrong(before), is_wrong(after):
        case False, True:
            return "lost"
        case True, False:
            return "gained"
        case True, True:
            return "wrong"
    return "same" if before.answer.split() == after.answer.split() else "other"


def marked(before: str, after: str) -> tuple[list[AnswerPiece], list[AnswerPiece]]:
    """Both answers in pieces, word by word: what only one has is marked."""
    one, other = _WORDS.findall(before), _WORDS.findall(after)
    plain_one, plain_other = [word.strip() for word in one], [word.strip() for word in other]
    left: list[AnswerPiece] = []
    right: list[AnswerPiece] = []
    for tag, a, b, c, d in SequenceMatcher(None, plain_one, plain_other, autojunk=False).get_opcodes():
        if b > a:
            left.append(AnswerPiece("same" if tag == "equal" else "removed", "".join(one[a:b])))
        if d > c:
            right.append(AnswerPiece("same" if tag == "equal" else "added", "".join(other[c:d])))
    return left, right
