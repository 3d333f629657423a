"""How far a judge agrees with people, and what its word is worth: the arithmetic.

                     judge: right   judge: wrong
    people: right    both           people_alone        true positive rate = both / people: right
    people: wrong    judge_alone    neither             true negative rate = neither / people: wrong

Agreement alone says little: who calls everything right agrees in nine of ten where nine of ten are. So kappa (Cohen,
1960) stands beside the base rates, and the two kinds of error by themselves.

What the true rate is follows from few labels and many judged answers (prediction-powered inference; Angelopoulos et
al., 2023; with its weight, Angelopoulos, Duchi and Zrnic, 2023): the labels alone are right and wide, the judge alone
is narrow and off; the labels tell by how much.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist
from typing import Literal

from pipelines.evaluate.judged.student import student_t

SURE = 0.95
HALF = 0.5  # added to each cell: few labels without an error do not say that there is none
FEWEST_OF_A_KIND = 10  # labels that say right, and that say wrong; with fewer a rate of theirs says nothing
GOOD, FAIR = 0.6, 0.4  # of kappa: substantial and moderate begin here (Landis and Koch, 1977)

Trust = Literal["too few labels", "not to be trusted", "corrected by labels", "as it stands"]


@dataclass(frozen=True)
class Interval:
    """A value with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Counts:
    """Labelled answers, by what people and the judge say."""

    both: int = 0  # say that it is right
    judge_alone: int = 0
    people_alone: int = 0
    neither: int = 0

    @classmethod
    def of(cls, pairs: Iterable[tuple[bool, bool]]) -> Counts:
        """Of what people say and what the judge says."""
        said = list(pairs)
        return cls(*(said.count(cell) for cell in ((True, True), (False, True), (True, False), (False, False))))

    @property
    def labels(self) -> int:
        return self.both + self.judge_alone + self.people_alone + self.neither

    @property
    def right(self) -> int:
        """As people say."""
        return self.both + self.people_alone

    @property
    def judged_right(self) -> int:
        return self.both + self.judge_alone

    @property
    def cells(self) -> tuple[int, int, int, int]:
        return self.both, self.judge_alone, self.people_alone, self.neither


def share(count: int, of: int) -> Interval | None:
    """With Wilson's interval (1927). None of nothing."""
    if not of:
        return None
    rate, spread = count / of, NormalDist().inv_cdf((1 + SURE) / 2) ** 2 / of
    middle = (rate + spread / 2) / (1 + spread)
    half = math.sqrt(spread * (rate * (1 - rate) + spread / 4)) / (1 + spread)
    return Interval(rate, _share(middle - half), _share(middle + half))


def true_positives(counts: Counts) -> Interval | None:
    """Of what people call right, the share that the judge does."""
    return share(counts.both, counts.right)


def true_negatives(counts: Counts) -> Interval | None:
    """Of what people call wrong, the share that the judge does."""
    return share(counts.neither, counts.labels - counts.right)


def kappa(counts: Counts) -> Interval | None:
    """Cohen's: agreement beyond what base rates alone bring, as a share of what they leave. None where they leave none.

    The interval is by Fleiss, Cohen and Everitt's standard error (1969) with a half added to each cell, and Student's
    t: where labels and judge never differ, the formula alone has none.
    """
    value = _kappa(counts.cells)
    if value is None:
        return None
    both, judge_alone, people_alone, neither = (cell + HALF for cell in counts.cells)
    size = both + judge_alone + people_alone + neither
    judge, people = (both + judge_alone) / size, (both + people_alone) / size
    middle = _kappa((both, judge_alone, people_alone, neither))
    assert middle is not None, "no cell is empty"
    left = 1 - middle
    expected = judge * people + (1 - judge) * (1 - people)
    agreed = both * (1 - (judge + people) * left) ** 2 + neither * (1 - (2 - judge - people) * left) ** 2
    differed = judge_alone * (1 - judge + people) ** 2 + people_alone * (judge + 1 - people) ** 2
    variance = (agreed + left**2 * differed) / size - (middle - expected * left) ** 2
    half = _t(size) * math.sqrt(max(0.0, variance) / size) / (1 - expected)
    return Interval(value, max(-1.0, min(value, middle - half)), min(1.0, max(value, middle + half)))


def _kappa(cells: Sequence[float]) -> float | None:
    both, judge_alone, people_alone, neither = cells
    size = sum(cells)
    if not size:
        return None
    judge, people = (both + judge_alone) / size, (both + people_alone) / size
    expected = judge * people + (1 - judge) * (1 - people)
    return None if expected == 1 else ((both + neither) / size - expected) / (1 - expected)


def powered(counts: Counts, judged_right: int, judged: int) -> Interval | None:
    """The share of right answers, from labels and from answers that the judge alone has seen.

        rate = people's share + w (judge's share of the others - judge's share of the labelled)
        w = cov(people, judge) / (var(judge) (1 + labelled / others)), between 0 and 1

    w is 0 for a judge that knows nothing, whose word then does no harm. A half is added to each of the four cells
    (Agresti and Min, 2005), and Student's t is taken: else few labels promise too much.

    Args:
        counts: of the labelled, drawn from all by chance. judged_right: of the others, those that the judge calls
            right. judged: so many are they.
    """
    if not counts.labels:
        return None
    both, judge_alone, people_alone, neither = (cell + HALF for cell in counts.cells)
    size = both + judge_alone + people_alone + neither
    people, judge = (both + people_alone) / size, (both + judge_alone) / size
    var_people, var_judge = people * (1 - people), judge * (1 - judge)
    covariance = both / size - people * judge
    weight, others, spread = 0.0, 0.0, 0.0
    if judged:
        others = judged_right / judged
        smooth = (judged_right + 1) / (judged + 2)
        weight = min(1.0, max(0.0, covariance / (var_judge * (1 + size / judged))))
        spread = smooth * (1 - smooth) / judged
    rate = people + weight * (others - judge)
    variance = (var_people + weight**2 * var_judge - 2 * weight * covariance) / size + weight**2 * spread
    half = _t(size) * math.sqrt(variance)
    return Interval(_share(rate), _share(rate - half), _share(rate + half))


def constancy(repeats: Iterable[Sequence[bool]]) -> tuple[float, int] | None:
    """How often the judge says the same of the same answer, as a share of pairs of repeats, each answer alike.

    Returns:
        The share, and of how many answers; None where none was judged twice.
    """
    shares = []
    for said in repeats:
        pairs = list(combinations(said, 2))
        if pairs:
            shares.append(sum(one == other for one, other in pairs) / len(pairs))
    return (sum(shares) / len(shares), len(shares)) if shares else None


def trust(counts: Counts, agreement: Interval | None) -> Trust:
    """How far the judge's figures may be trusted.

    Not, where kappa is below FAIR or may be none; as they stand, where it is GOOD even at its lower end. Between them
    the share by labels and judge together is to be taken, which is right with any judge.
    """
    if min(counts.right, counts.labels - counts.right) < FEWEST_OF_A_KIND:
        return "too few labels"
    if agreement is None or agreement.low <= 0 or agreement.value < FAIR:
        return "not to be trusted"
    return "as it stands" if agreement.low >= GOOD else "corrected by labels"


def _t(size: float) -> float:
    """Quantile of Student's t for a mean of so many."""
    return student_t(round(size) - 1, SURE)


def _share(value: float) -> float:
    return min(1.0, max(0.0, value))
