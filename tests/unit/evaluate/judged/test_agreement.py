"""A judge held against people, by hand. With judges of known error: tests/tooling/bench/test_judge_errors.py."""

from __future__ import annotations

import numpy as np
import pytest

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

FIFTY = AgreementCounts(both=20, judge_alone=5, people_alone=10, neither=15)


def near(found: Interval | None, value: float, low: float, high: float, within: float = 0.001) -> bool:
    assert found
    return (found.value, found.low, found.high) == pytest.approx((value, low, high), abs=within)


def test_counts_are_of_pairs() -> None:
    pairs = [(True, True)] * 20 + [(False, True)] * 5 + [(True, False)] * 10 + [(False, False)] * 15
    assert AgreementCounts.of(reversed(pairs)) == FIFTY
    assert (FIFTY.labels, FIFTY.right, FIFTY.judged_right) == (50, 30, 25)


def test_agreement_by_hand() -> None:
    """Agreed are 35 of 50; by chance .6 · .5 + .4 · .5 = .5: kappa (.7 - .5) / (1 - .5) = .4."""
    assert near(kappa(FIFTY), 0.4, 0.1384, 0.6308)


def test_kappas_interval_is_that_of_the_slopes() -> None:
    """The same standard error another way: how kappa moves with each cell, and how cells vary (the delta method)."""
    cells = np.array(FIFTY.cells) + 0.5
    shares, step = cells / cells.sum(), 1e-6

    def of(some: np.ndarray) -> float:
        judge, people = some[0] + some[1], some[0] + some[2]
        expected = judge * people + (1 - judge) * (1 - people)
        return float((some[0] + some[3] - expected) / (1 - expected))

    slopes = np.array([(of(shares + step * e) - of(shares - step * e)) / (2 * step) for e in np.eye(4)])
    variance = (shares @ slopes**2 - (shares @ slopes) ** 2) / cells.sum()
    half = 1.95996 * variance**0.5
    assert near(kappa(FIFTY), 0.4, of(shares) - half, of(shares) + half)


def test_rates_by_hand() -> None:
    """Wilson's interval: (p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n)."""
    assert near(true_positives(FIFTY), 20 / 30, 0.4878, 0.8077)
    assert near(true_negatives(FIFTY), 15 / 20, 0.5313, 0.8881)
    assert near(share(10, 10), 1.0, 0.7225, 1.0)
    assert share(0, 0) is None


def test_who_calls_everything_right_agrees_and_knows_nothing() -> None:
    """Nine of ten agreed, and kappa is 0."""
    found = kappa(AgreementCounts(both=90, judge_alone=10))
    assert found
    assert found.value == 0
    assert kappa(AgreementCounts(both=90)) is None  # base rates leave nothing to agree on
    assert kappa(AgreementCounts()) is None
    assert true_negatives(AgreementCounts(both=90)) is None


def test_few_labels_without_an_error_are_no_proof() -> None:
    found = kappa(AgreementCounts(both=10, neither=10))
    assert found
    assert found.value == 1
    assert 0.6 < found.low < 0.8
    assert found.high == 1


def test_constancy_by_hand() -> None:
    """Pairs that agree: all of three, one of three, none of one; an answer judged once says nothing. (1 + 1/3 + 0)/3"""
    said = [(True, True, True), (True, False, True), (True, False), (True,)]
    assert constancy(said) == (pytest.approx(4 / 9), 3)
    assert constancy([(True,)]) is None


@pytest.mark.parametrize(
    ("counts", "told"),
    [
        (AgreementCounts(both=190, judge_alone=4, people_alone=6, neither=9 - 4), "too few labels"),
        (AgreementCounts(both=8, neither=100), "too few labels"),
        (AgreementCounts(both=50, judge_alone=50, people_alone=50, neither=50), "not to be trusted"),
        (AgreementCounts(both=12, judge_alone=8, people_alone=6, neither=8), "not to be trusted"),
        (AgreementCounts(both=40, judge_alone=10, people_alone=8, neither=20), "with care"),
        (AgreementCounts(both=60, judge_alone=3, people_alone=4, neither=33), "as it stands"),
    ],
)
def test_how_far_it_may_be_trusted(counts: AgreementCounts, told: Trust) -> None:
    assert trust(counts, kappa(counts)) == told
