"""Two published runs side by side: what the gate says of their figures, and answers with their differences marked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from pipelines.evaluate.comparison import WHOLE, Comparison, NothingToCompare, compare
from schemas.evaluation import CaseResult, PublishedRun

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
