"""Judges of known error: what is said of them is so as often as 95 % intervals promise."""

from __future__ import annotations

import pytest

from bench.judge_errors import JUDGES, Judge, recovered

DRAWS = 1_000  # seeds, the same each time
ALLOWED = 930  # of 950 that are expected: three standard errors less


def test_the_true_kappa_by_hand() -> None:
    """Of 100: 63 and 24 agreed; the judge says right of 69. Chance .7 · .69 + .3 · .31 = .576."""
    assert Judge(0.7, 0.9, 0.8, 100).kappa == pytest.approx((0.87 - 0.576) / 0.424)


@pytest.mark.parametrize("judge", [JUDGES[0], JUDGES[3], JUDGES[4], JUDGES[-1]], ids=str)
def test_the_truth_is_within_in_95_of_100(judge: Judge) -> None:
    """docs/reference/measures.md has the whole table, from 2,000 draws each."""
    found = recovered(judge, DRAWS)
    for name in ("kappa", "positive", "negative", "both"):
        assert found[name].within >= ALLOWED, name


def test_a_judge_alone_is_narrow_and_off() -> None:
    """Which is what the labels are for; and a judge that guesses does them no harm."""
    good, guesses = recovered(JUDGES[4], 100), recovered(JUDGES[-1], 100)
    assert good["judge"].within < 85
    assert good["both"].width < 0.85 * good["labels"].width
    assert guesses["judge"].within == 0
    assert guesses["both"].width < 1.05 * guesses["labels"].width
