"""What `make mutants` draws and reckons."""

from __future__ import annotations

import pytest

from tests.mutants.__main__ import Tried, interval, report, still_true
from tests.mutants.mutations import Source, drawn, sample

OFFSETS = Source("worker/offsets.py")


def test_every_mutant_is_other_code_and_knows_its_statement() -> None:
    every = drawn("worker", [OFFSETS], len(OFFSETS), seed=1)
    assert len({mutant.text for mutant in every} | {OFFSETS.text}) == len(OFFSETS) + 1
    for mutant in every:
        compile(mutant.text, mutant.id, "exec")
        lines, before, after = mutant.changed
        assert before != after
        assert mutant.statement.lines & set(lines)
    [at_import] = {tuple(mutant.changed[1]) for mutant in every if not mutant.statement.in_function}
    assert at_import == ('Partition = TypeVar("Partition", bound=Hashable)',)


def test_a_seed_draws_the_same_again() -> None:
    first, again, other = (drawn("worker", [OFFSETS], 5, seed) for seed in (7, 7, 8))
    assert [mutant.id for mutant in first] == [mutant.id for mutant in again] != [mutant.id for mutant in other]


def test_small_packages_get_more_of_a_sample_than_their_share() -> None:
    assert sample({"small": 100, "large": 10_000}, 110) == {"small": 10, "large": 100}
    assert sample({"small": 100, "large": 10_000}, None) == {"small": 100, "large": 10_000}


def test_intervals_are_wilsons() -> None:
    # Newcombe, Two-sided confidence intervals for the single proportion (1998), table I: 81 of 263, 15 of 148, 0 of 20.
    assert interval(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert interval(15, 148) == pytest.approx((0.0624, 0.1605), abs=5e-5)
    assert interval(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)


def tried(outcome: str) -> Tried:
    return Tried("a.py:1", OFFSETS.digest, "tests", outcome, 1, 1.0)


def test_the_rate_over_all_weighs_packages_by_their_mutants() -> None:
    half, none = [tried("killed"), tried("survived")], [tried("killed"), tried("late")]
    last = report({"worker": half, "query": none}, {"worker": 100, "query": 300}).splitlines()[-1]
    assert last.startswith("| all | 400 | 4 | 2 | 1 | 1 | 0 | 12.5% ")


def test_what_was_killed_stays_so_until_its_file_changes_and_survivors_are_tried_with_other_tests() -> None:
    assert still_true(tried("killed"), OFFSETS, "other tests")
    assert still_true(tried("survived"), OFFSETS, "tests")
    assert not still_true(tried("survived"), OFFSETS, "other tests")
    assert not still_true(tried("killed"), Source("worker/guard.py"), "tests")
