"""Whether a candidate is not worse than what is live by more than a margin: the arithmetic of the gate.

differences, one for each case ─▶ chance of them if the candidate lost the margin ─▶ not worse │ worse │ undecided

Both systems are asked the same cases, so each case gives a difference between -1 (lost altogether) and 1. The bound is
that of the Bayesian bootstrap (Rubin, 1981) with one more case, lost altogether: the weights are a Dirichlet
distribution's, and the one of the added case is worked out exactly. For figures that are right or wrong with no wins
it is Clopper and Pearson's (1934); for others it is Gaffke's (2005), which Learned-Miller and Thomas (2020) found to
hold for every bounded figure they tried. Unlike a bootstrap alone it knows that few cases without a difference say
little: no difference in 20 cases leaves a loss of 14 of 100 possible.

How often it errs is simulated: `python -m bench gate-errors`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from schemas.rebuild import State

MARGIN = 0.03  # of the figure's scale 0..1: the loss that is put up with
ERROR = 0.05  # chance of letting a candidate through that loses the margin
POWER = 0.8  # chance of letting one through that is as good
Z_ERROR, Z_POWER = 1.6449, 0.8416  # quantiles of the normal distribution at 1 - ERROR and at POWER
DRAWS = 4_000  # the chance at 0.05 is then within 0.003 of its value
SEED = 7  # the same differences get the same verdict
REMEMBERED = 256  # bounds: many figures of a run differ in the same way, most of them not at all

Differences = NDArray[np.float64] | Sequence[float]


@dataclass(frozen=True)
class Paired:
    """A figure of the same cases before and after."""

    cases: int
    live: float
    candidate: float
    difference: float  # candidate minus live
    low: float  # 95 sure that the true difference is not below, of 100
    high: float  # and not above
    state: State
    needed: int  # cases to tell; 0: they are enough


def paired(live: Differences, candidate: Differences, margin: float = MARGIN) -> Paired:
    """Compare a figure, 0..1 in each case. Both in the same order of cases, of which there is at least one."""
    before, after = np.asarray(live, dtype=float), np.asarray(candidate, dtype=float)
    differences = after - before
    state, needed = verdict(differences, margin)
    return Paired(
        cases=len(differences),
        live=float(before.mean()),
        candidate=float(after.mean()),
        difference=float(differences.mean()),
        low=lower_bound(differences),
        high=-lower_bound(-differences),
        state=state,
        needed=needed,
    )


def verdict(differences: Differences, margin: float = MARGIN) -> tuple[State, int]:
    """Whether a candidate may pass, and how many cases it takes to tell where these are too few.

    not worse: it would take a chance of one in twenty to see these if it lost the margin or more.
    worse: it would take such a chance if it lost nothing.
    undecided: neither; it must not pass, and nothing is said against it.
    """
    if chance(differences, -margin) <= ERROR:
        return "not worse", 0
    if chance(-np.asarray(differences, dtype=float), 0.0) <= ERROR:
        return "worse", 0
    return "undecided", cases_needed(differences, margin)


def chance(differences: Differences, least: float) -> float:
    """Chance of differences as good as these, at most, if their true mean were `least` or lower (a p-value).

    Args:
        least: between -1 and 1.
    """
    # By logarithms: where hundreds of cases are lost altogether, the power itself is too large for a number.
    logs = len(differences) * (math.log1p(least) - np.log1p(_weighted(*_tally(differences))))
    return float(np.exp(np.minimum(0.0, logs)).mean())


def lower_bound(differences: Differences, error: float = ERROR) -> float:
    """What the true mean is not below, but with a chance of `error`; -1 without any case."""
    if not len(differences):
        return -1.0
    return _lower_bound(*_tally(differences), error)


@lru_cache(REMEMBERED)
def _lower_bound(values: tuple[float, ...], counts: tuple[int, ...], error: float) -> float:
    log_means, count = np.log1p(_weighted(values, counts)), sum(counts)
    low, high = -1.0, 1.0
    while high - low > 1e-7:
        middle = (low + high) / 2
        logs = np.minimum(0.0, count * (math.log1p(middle) - log_means))
        low, high = (middle, high) if np.exp(logs).mean() <= error else (low, middle)
    return low


def fewest_cases(margin: float = MARGIN) -> int:
    """Cases below which no candidate can pass: with fewer, a loss of the margin may leave no trace in any.

    (1 - margin) ** n <= ERROR, so n >= log(ERROR) / log(1 - margin): 99 for a margin of 0.03.
    """
    return math.ceil(math.log(ERROR) / math.log1p(-margin))


def cases_needed(differences: Differences, margin: float = MARGIN) -> int:
    """Cases by which a candidate that loses nothing passes four times of five, if they differ as much as these.

    n = ((z_error + z_power) / margin)² variance, as for any mean (Julious, 2004), but not below `fewest_cases`, and not
    below what there are: they have just been too few. Few cases that do not differ promise nothing for many: it is the
    least it takes.
    """
    values = np.asarray(differences, dtype=float)
    variance = float((values**2).mean())  # about 0, for a candidate that loses nothing
    by_variance = ((Z_ERROR + Z_POWER) / margin) ** 2 * variance
    return max(math.ceil(by_variance), fewest_cases(margin), len(values) + 1)


def _tally(differences: Differences) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """The differences without repetition, and the number of cases that have each."""
    values, counts = np.unique(np.asarray(differences, dtype=float), return_counts=True)
    return tuple(values.tolist()), tuple(counts.tolist())


def _weighted(values: tuple[float, ...], counts: tuple[int, ...]) -> NDArray[np.float64]:
    """Means of the cases under weights by chance, from `_tally`. Shape (DRAWS,), above -1."""
    # Weights of cases that are alike are drawn at once: a sum of Dirichlet weights is one of their counts.
    weights: NDArray[Any] = np.random.default_rng(SEED).dirichlet(counts, DRAWS)
    means: NDArray[np.float64] = np.maximum(weights @ np.array(values), -1 + 1e-12)
    return means
