"""The gate's arithmetic: against exact chances, worked examples, and how often it errs."""

from __future__ import annotations

from functools import cache
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.evaluate.non_inferiority import (
    ERROR,
    cases_needed,
    chance,
    fewest_cases,
    lower_bound,
    paired,
    verdict,
)

DIFFERENCES = st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0]), min_size=1, max_size=40)


def cases(won: int, lost: int, of: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([1.0] * won + [-1.0] * lost + [0.0] * (of - won - lost))


def test_cases_without_a_difference_say_something_when_there_are_99_of_them() -> None:
    """0.97 ** 99 = 0.049: a loss of 3 of 100 leaves a trace in 99 cases, but for one time of twenty."""
    assert fewest_cases(0.03) == 99
    assert (fewest_cases(0.05), fewest_cases(0.1)) == (59, 29)
    assert chance(cases(0, 0, 99), -0.03) == pytest.approx(0.97**99)
    assert verdict(cases(0, 0, 99)) == ("not worse", 0)
    assert verdict(cases(0, 0, 98)) == ("undecided", 99)
    assert lower_bound(cases(0, 0, 20)) == pytest.approx(-(1 - 0.05 ** (1 / 20)), abs=1e-6)  # -0.139


@pytest.mark.parametrize(("lost", "of"), [(0, 50), (1, 50), (3, 300), (5, 300), (9, 300), (4, 40)])
def test_where_nothing_is_won_it_is_the_exact_binomial_chance(lost: int, of: int) -> None:
    exact = sum(comb(of, k) * 0.03**k * 0.97 ** (of - k) for k in range(lost + 1))
    assert chance(cases(0, lost, of), -0.03) == pytest.approx(exact, abs=0.01)


@pytest.mark.parametrize(
    ("won", "lost", "of", "state"),
    [
        (0, 0, 300, "not worse"),
        (0, 3, 300, "not worse"),  # a chance of 0.021 if it lost 0.03
        (0, 4, 300, "undecided"),  # 0.053; and who loses nothing loses four of four in one of 16
        (0, 5, 300, "worse"),
        (6, 6, 300, "not worse"),
        (15, 15, 300, "undecided"),
        (0, 3, 20, "undecided"),  # what the gate before this one let through
        (0, 3, 50, "undecided"),
        (0, 24, 300, "worse"),
        (20, 0, 100, "not worse"),
    ],
)
def test_worked_examples(won: int, lost: int, of: int, state: str) -> None:
    assert verdict(cases(won, lost, of))[0] == state


def test_too_few_cases_are_told_how_many_it_takes() -> None:
    # 30 of 300 differ: ((1.6449 + 0.8416) / 0.03)² * 30 / 300
    assert verdict(cases(15, 15, 300)) == ("undecided", 687)
    assert cases_needed(cases(0, 0, 10)) == fewest_cases() == 99
    assert cases_needed(cases(15, 15, 300), 0.1) == 301  # it must be more than have just been too few


def test_paired_figures_say_what_they_compare() -> None:
    told = paired([1, 1, 0, 0.5], [1, 0, 0, 1.0])
    assert (told.cases, told.live, told.candidate, told.difference) == (4, 0.625, 0.5, -0.125)
    assert told.low < -0.125 < told.high
    assert (told.state, told.needed > 4) == ("undecided", True)


@settings(max_examples=50)
@given(DIFFERENCES, st.floats(0.01, 0.2), st.floats(0.01, 0.2))
def test_a_wider_margin_is_easier(differences: list[float], one: float, other: float) -> None:
    assert chance(differences, -max(one, other)) <= chance(differences, -min(one, other))


@settings(max_examples=50)
@given(DIFFERENCES, st.floats(-0.9, 0.9))
def test_the_bound_and_the_chance_agree(differences: list[float], least: float) -> None:
    bound = lower_bound(differences)
    if abs(bound - least) > 1e-5:
        assert (chance(differences, least) <= ERROR) == (bound > least)
    assert -1 <= bound <= float(np.mean(differences)) <= -lower_bound(-np.array(differences)) <= 1


@settings(max_examples=50)
@given(DIFFERENCES)
def test_the_order_of_cases_does_not_matter(differences: list[float]) -> None:
    assert verdict(differences) == verdict(sorted(differences))


@pytest.mark.parametrize("both", [0.0, 0.02, 0.1])
def test_at_most_one_of_twenty_that_lose_the_margin_passes_and_a_loss_of_8_is_seen(both: float) -> None:
    """300 cases, margin 0.03; `both`: share of cases that differ for nothing. docs/reference has the whole table."""
    rng = np.random.default_rng(11)

    @cache
    def state(won: int, lost: int) -> str:
        return verdict(cases(won, lost, 300))[0]

    def shares(loss: float) -> dict[str, float]:
        drawn = rng.multinomial(300, [both / 2, loss + both / 2, 1 - loss - both], 1_500)
        states = [state(won, lost) for won, lost, _ in drawn]
        return {name: states.count(name) / len(states) for name in ("not worse", "worse")}

    assert shares(0.03).get("not worse", 0) <= 0.05
    assert shares(0.08).get("worse", 0) >= 0.8


def test_hundreds_of_cases_lost_altogether_are_worse() -> None:
    assert chance([-1.0] * 500, -0.03) == 1
    assert verdict([-1.0] * 500)[0] == "worse"
