"""Two published runs side by side."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from pipelines.evaluate.non_inferiority import MARGIN
from pipelines.evaluate.publication import AnswerPiece, failures_first, marked, shown_checks, side_by_side
from tests.published_runs import AFTER, BEFORE, run


def test_what_got_worse_comes_first() -> None:
    paired = side_by_side(run(0, BEFORE), run(1, AFTER), MARGIN)
    assert [(each.after.case, each.change) for each in paired.cases] == [
        ("two", "lost"),
        ("three", "gained"),
        ("one", "other"),
    ]
    assert paired.comparison is not None
    assert paired.comparison.outcome in ("worse", "too few cases")
    [right, refusal] = [check for check in shown_checks(paired.comparison) if check[0] == "all"]
    assert (right[1], right[2:4]) == ("right", pytest.approx((2 / 3, 2 / 3)))
    assert refusal[1] == "refusal"


def test_spaces_and_a_failure_both_times_are_told() -> None:
    before = {"one": (1.0, "It is."), "two": (0.0, "No.")}
    paired = side_by_side(run(0, before), run(1, {"one": (1.0, "It  is.\n"), "two": (0.0, "Never.")}), MARGIN)
    assert [(each.after.case, each.change) for each in paired.cases] == [("two", "wrong"), ("one", "same")]


def test_runs_of_other_cases_are_not_decided() -> None:
    other = run(1, {"two": (0.0, "No."), "four": (1.0, "Yes.")}, fingerprint="0" * 12)
    paired = side_by_side(run(0, BEFORE), other, MARGIN)
    assert paired.comparison is None
    assert [each.after.case for each in paired.cases] == ["two"]
    unmeasured = run(1, results=[{"case": "one", "question": "?"}])
    assert side_by_side(unmeasured, unmeasured, MARGIN).comparison is None


def test_failures_come_first() -> None:
    results = run(said={"good": (1.0, "Yes."), "wrong": (0.0, "No."), "half": (0.5, "Well.")}).results
    failed = results[0].model_copy(update={"case": "failed", "failed": "model-down"})
    assert [each.case for each in failures_first([*results, failed])] == ["failed", "wrong", "half", "good"]


def test_words_that_only_one_has_are_marked() -> None:
    assert marked("A card costs 12 euros.", "A card costs\n18 euros a year.") == (
        [AnswerPiece("same", "A card costs"), AnswerPiece("removed", " 12 euros.")],
        [AnswerPiece("same", "A card costs"), AnswerPiece("added", "\n18 euros a year.")],
    )
    assert marked("", "New.") == ([], [AnswerPiece("added", "New.")])


@given(some.text(max_size=60), some.text(max_size=60))
def test_nothing_is_lost_by_marking(before: str, after: str) -> None:
    left, right = marked(before, after)
    assert ("".join(each.text for each in left), "".join(each.text for each in right)) == (before, after)
