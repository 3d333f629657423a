"""When a run may take the place of another."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.evaluate.comparison import NothingToCompare, compare, holm


def run(*figures: float, name: str = "right") -> dict[str, dict[str, float]]:
    return {f"c{number}": {name: figure} for number, figure in enumerate(figures)}


def test_the_same_answers_pass_when_there_are_enough() -> None:
    assert compare(run(*[1] * 99), run(*[1] * 99), {}).outcome == "passed"
    few = compare(run(*[1] * 20), run(*[1] * 20), {})
    assert (few.passed, few.outcome, few.needed) == (False, "too few cases", 99)
    assert few.checks[0].outcome == "too few cases: 99 needed"


def test_three_of_twenty_lost_do_not_pass() -> None:
    told = compare(run(*[1] * 20), run(*[0] * 3, *[1] * 17), {})
    assert (told.outcome, told.passed) == ("too few cases", False)
    assert told.needed == 1_031  # (2.4865 / 0.03)² * 3 / 20
    assert compare(run(*[1] * 50), run(*[0] * 8, *[1] * 42), {}).outcome == "worse"


def test_every_figure_of_the_whole_must_pass() -> None:
    live = {id: {"right": 1.0, "hit@1": 1.0} for id in run(*[1] * 200)}
    lost = {id: {"right": 1.0, "hit@1": float(number > 20)} for number, id in enumerate(live)}
    told = compare(live, lost, {})
    assert {check.measure: check.outcome for check in told.checks} == {"hit@1": "worse", "right": "not worse"}
    assert told.outcome == "worse"
    assert compare(live, lost, {}, measures=("right",)).passed


def test_a_language_stops_what_is_worse_in_it_although_the_whole_passes() -> None:
    live = run(*[1] * 1_000)
    candidate = run(*[0] * 12, *[1] * 988)
    groups = {"lang de": frozenset(f"c{n}" for n in range(40)), "lang en": frozenset(f"c{n}" for n in range(40, 1_000))}
    told = compare(live, candidate, groups)
    assert {check.group: (check.outcome, check.stops) for check in told.checks} == {
        "all": ("not worse", False),
        "lang de": ("worse", True),
        "lang en": ("not worse", False),
    }
    assert told.outcome == "worse"
    few = compare(live, candidate, {"lang de": frozenset(f"c{n}" for n in range(10, 30))})
    assert [check.outcome.partition(":")[0] for check in few.checks] == ["not worse", "too few cases"]
    assert few.passed


def test_looking_at_many_tags_finds_nothing_by_chance() -> None:
    """Five lost of five is one chance of 32 in each tag, and that of forty tags."""
    live, candidate = run(*[1] * 2_000), run(*[0] * 5, *[1] * 1_995)
    one = {"tag a": frozenset(f"c{n}" for n in range(5))}
    many = one | {f"tag {n}": frozenset([f"c{n}"]) for n in range(100, 139)}
    assert compare(live, candidate, one).outcome == "worse"
    told = compare(live, candidate, many)
    assert told.passed
    assert "worse, as one of so many may be by chance" in {check.outcome for check in told.checks}


def test_only_cases_that_have_the_figure_in_both_runs_are_compared() -> None:
    live, candidate = run(1, 1, 1), {"c0": {"right": 1.0}, "c1": {"MRR@10": 1.0}}
    assert compare(live, candidate, {}).checks[0].figures.cases == 1
    with pytest.raises(NothingToCompare, match=r"hit@1 or MRR@10"):
        compare(run(1, name="F1"), run(1, name="F1"), {})


def test_holms_correction_by_hand() -> None:
    """0.01 <= 0.05 / 3, 0.02 <= 0.05 / 2, 0.06 > 0.05 / 1; and 0.02 > 0.05 / 3 ends it."""
    assert holm({"a": 0.01, "b": 0.06, "c": 0.02}) == {"a", "c"}
    assert holm({"a": 0.02, "b": 0.03, "c": 0.02}) == frozenset()
    assert holm({}) == frozenset()


def test_an_equal_candidate_is_seldom_stopped_by_one_of_its_languages() -> None:
    rng = np.random.default_rng(2)
    ids = [f"c{n}" for n in range(200)]
    groups = {f"tag {n}": frozenset(ids[n::10]) for n in range(10)}
    stopped = 0
    for _ in range(30):
        before, after = rng.random((2, 200)) < 0.8
        live, candidate = (
            {id: {"right": float(one)} for id, one in zip(ids, side, strict=True)} for side in (before, after)
        )
        stopped += any(check.stops for check in compare(live, candidate, groups).checks if check.group != "all")
    assert stopped <= 4
