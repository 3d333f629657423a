"""How far a judge agrees with people, and what its word is worth: the arithmetic.

                     judge: right   judge: wrong
    people: right    both           people_alone        true positive rate = both / people: right
    people: wrong    judge_alone    neither             true negative rate = neither / people: wrong

Agreement alone says little: who calls everything right agrees in nine of ten where nine of ten are. So kappa (Cohen,
1960) stands beside the base rates, and the two kinds of error by themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist
from typing import Literal

Z = NormalDist().inv_cdf(0.975)  # of 95 % intervals
HALF = 0.5  # added to each cell: few labels without an error do not say that there is none
FEWEST_OF_A_KIND = 10  # labels that say right, and that say wrong; with fewer a rate of theirs says nothing
GOOD, FAIR = 0.6, 0.4  # of kappa: substantial and moderate begin here (Landis and Koch, 1977)

Trust = Literal["too few labels", "not to be trusted", "with care", "as it stands"]


@dataclass(frozen=True)
class Interval:
    """A value with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class AgreementCounts:
    """Labelled answers, by what people and the judge say."""

    both: int = 0  # say that it is right
    judge_alone: int = 0
    people_alone: int = 0
    neither: int = 0

    @classmethod
    def of(cls, pairs: Iterable[tuple[bool, bool]]) -> AgreementCounts:
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
    rate, spread = count / of, Z**2 / of
    middle = (rate + spread / 2) / (1 + spread)
    half = math.sqrt(spread * (rate * (1 - rate) + spread / 4)) / (1 + spread)
    return Interval(rate, _share(middle - half), _share(middle + half))


def true_positives(counts: AgreementCounts) -> Interval | None:
    """Of what people call right, the share that the judge does."""
    return share(counts.both, counts.right)


def true_negatives(counts: AgreementCounts) -> Interval | None:
    """Of what people call wrong, the share that the judge does."""
    return share(counts.neither, counts.labels - counts.right)


def kappa(counts: AgreementCounts) -> Interval | None:
    """Cohen's: agreement beyond what base rates alone bring, as a share of what they leave. None where they leave none.

    The interval is by Fleiss, Cohen and Everitt's standard error (1969) with a half added to each cell: where labels
    and judge never differ, the formula alone has none.
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
    half = Z * math.sqrt(max(0.0, variance) / size) / (1 - expected)
    return Interval(value, max(-1.0, min(value, middle - half)), min(1.0, max(value, middle + half)))


def _kappa(cells: Sequence[float]) -> float | None:
    both, judge_alone, people_alone, neither = cells
    size = sum(cells)
    if not size:
        return None
    judge, people = (both + judge_alone) / size, (both + people_alone) / size
    expected = judge * people + (1 - judge) * (1 - people)
    return None if expected == 1 else ((both + neither) / size - expected) / (1 - expected)


def constancy(repeats: Iterable[Sequence[bool]]) -> tuple[float, int] | None:
    """How often the judge says the same of the same answer, as a share of pairs of repeats, each answer alike.

    Returns: The share, and of how many answers; None where none was judged twice.
    """
    shares = []
    for said in repeats:
        pairs = list(combinations(said, 2))
        if pairs:
            shares.append(sum(one == other for one, other in pairs) / len(pairs))
    return (sum(shares) / len(shares), len(shares)) if shares else None


def trust(counts: AgreementCounts, agreement: Interval | None) -> Trust:
    """How far the judge's figures may be trusted.

    Not, where kappa is below FAIR or may be none; as they stand, where it is GOOD even at its lower end.
    """
    if min(counts.right, counts.labels - counts.right) < FEWEST_OF_A_KIND:
        return "too few labels"
    if agreement is None or agreement.low <= 0 or agreement.value < FAIR:
        return "not to be trusted"
    return "as it stands" if agreement.low >= GOOD else "with care"


def _share(value: float) -> float:
    return min(1.0, max(0.0, value))
