"""Differences: nothing is called better that is not, and what is much better is."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.evaluate.comparison import adjusted, holm
from pipelines.evaluate.experiments.report import cases_to_show, differences

RIGHT = ("right",)


def figures(values: list[float]) -> dict[str, dict[str, float]]:
    return {f"c{number}": {"right": value} for number, value in enumerate(values)}


def test_holm_by_hand() -> None:
    # Four chances: .01 x 4 = .04; .02 x 3 = .06; .03 x 2 = .06, not less than the one before; .04 x 1 is raised to it.
    told = adjusted({"c": 0.03, "a": 0.01, "d": 0.04, "b": 0.02})
    assert told == pytest.approx({"a": 0.04, "b": 0.06, "c": 0.06, "d": 0.06})
    # Wright (1992): .005, .011, .02, .04, .13 become .025, .044, .06, .08, .13
    wright = adjusted(dict(enumerate((0.005, 0.011, 0.02, 0.04, 0.13))))
    assert list(wright.values()) == pytest.approx([0.025, 0.044, 0.06, 0.08, 0.13])
    assert adjusted({"a": 0.6, "b": 0.7}) == {"a": 1.0, "b": 1.0}
    assert holm({"a": 0.01, "b": 0.02, "c": 0.03, "d": 0.04}) == {"a"}
    assert adjusted({}) == {}


def test_what_is_much_better_or_worse_is_called_so() -> None:
    base = figures([float(n % 2) for n in range(200)])
    arms = {
        "better": figures([1.0] * 150 + [float(n % 2) for n in range(50)]),
        "same": base,
        "worse": figures([0.0] * 150 + [float(n % 2) for n in range(50)]),
    }
    better, same, worse = differences(base, arms, RIGHT, 0.05)
    assert (better.verdict, same.verdict, worse.verdict) == ("better", "not shown", "worse")
    assert (better.base, better.mean, better.difference) == (0.5, 0.875, 0.375)
    assert 0.25 < better.low < 0.375 < better.high < 0.5
    assert (same.by_noise, same.corrected, same.low < 0 < same.high) == (1.0, 1.0, True)
    assert worse.high < 0
    assert better.corrected == pytest.approx(3 * better.by_noise)


def test_only_cases_that_both_have_are_compared() -> None:
    arm = {f"c{number}": {"right": 1.0} for number in range(3)} | {"c3": {"EM": 1.0}, "c9": {"right": 1.0}}
    [told] = differences(figures([0.0] * 6), {"arm": arm}, RIGHT, 0.05)
    assert (told.cases, told.difference) == (3, 1.0)
    assert differences(figures([0.0] * 6), {"arm": {"c9": {"right": 1.0}}}, RIGHT, 0.05) == ()


def test_too_few_cases_are_said() -> None:
    random = np.random.default_rng(1)
    base, arm = (figures([float(each) for each in random.random(40) < 0.6]) for _ in range(2))
    [told] = differences(base, {"arm": arm}, RIGHT, 0.05)
    assert told.verdict == "not shown"
    assert told.needed > 1_000
    # ((1.960 + 0.842) / .05)² x .5 = 1,570 for one arm whose cases differ by -1, 0, 0 and 1; more for ten arms.
    spread = [-1.0, 0.0, 0.0, 1.0] * 10
    assert cases_to_show(spread, 0.05, 1) == 1_570
    assert cases_to_show(spread, 0.05, 10) > 2_500
    assert cases_to_show([0.0] * 40, 0.05, 1) >= 100  # no difference in 40 cases promises nothing


def test_noise_alone_calls_nothing_better() -> None:
    """60 experiments with 8 arms that are as good as the base: a verdict in one of twenty at most."""
    random = np.random.default_rng(5)
    called = 0
    for _ in range(60):
        cases = random.random(120) * 0.6 + 0.2  # hard and easy ones
        base = figures([float(each) for each in random.random(120) < cases])
        arms = {f"a{n}": figures([float(each) for each in random.random(120) < cases]) for n in range(8)}
        called += any(each.verdict != "not shown" for each in differences(base, arms, RIGHT, 0.05))
    assert called <= 6  # of 60: with a true rate of .05, seven or more come by chance in 3 of 100; it is below


def test_without_the_correction_it_would_call_some() -> None:
    random = np.random.default_rng(5)
    alone = 0
    for _ in range(40):
        base = figures([float(each) for each in random.random(120) < 0.6])
        arms = {f"a{n}": figures([float(each) for each in random.random(120) < 0.6]) for n in range(8)}
        alone += any(each.by_noise <= 0.05 for each in differences(base, arms, RIGHT, 0.05))
    assert alone >= 4
