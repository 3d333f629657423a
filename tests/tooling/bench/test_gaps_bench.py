"""The set of questions by meaning, and how groups are judged by it."""

from __future__ import annotations

from collections import Counter

import pytest

from bench.gaps import Part, cases, judged


@pytest.mark.parametrize(("part", "count"), [("tune", 72), ("hold-out", 73)])
def test_each_half_has_meanings_in_three_languages_and_questions_that_stand_alone(part: Part, count: int) -> None:
    every = cases(part)
    assert len(every) == len({case.text for case in every}) == count
    often = Counter(case.meaning for case in every)
    assert sum(number > 1 for number in often.values()) == 10
    assert sum(number == 1 for number in often.values()) == 8
    assert {case.lang for case in every} == {"en", "de", "fr"}


def test_the_halves_have_no_question_in_common() -> None:
    assert not {case.text for case in cases("tune")} & {case.text for case in cases("hold-out")}


def test_groups_are_judged_by_pairs() -> None:
    same = judged([0, 0, 1, 1], [5, 5, 7, 7])
    assert (same.precision, same.recall, same.f1, same.rand) == (1, 1, 1, 1)
    apart = judged([0, 0, 1, 1], [1, 2, 3, 4])
    assert (apart.precision, apart.recall, apart.f1, apart.rand) == (1, 0, 0, 0)
    joined = judged([0, 0, 1, 2], [0, 0, 0, 1])
    assert joined.precision == pytest.approx(1 / 3)
    assert (joined.recall, joined.f1) == (1, 0.5)
    assert joined.rand == pytest.approx((1 - 3 / 6) / (2 - 3 / 6))
