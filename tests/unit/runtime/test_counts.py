"""Counts that several processes share."""

from __future__ import annotations

from itertools import permutations

import pytest

from pipelines.runtime.counts import SharedCounts
from schemas.worker import Counts


class Clock:
    def __init__(self, now: float = 600.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def tell(one: SharedCounts, *others: SharedCounts) -> list[Counts]:
    said = one.changes()
    for counts in said:
        for other in others:
            other.merge(counts)
    return said


def test_each_counts_for_itself_and_knows_what_the_others_said() -> None:
    clock = Clock()
    one, other = SharedCounts(60, clock), SharedCounts(60, clock)
    one.add("a", 2)
    other.add("a")
    assert (one.of("a"), other.of("a"), one.of("b")) == (2, 1, 0)
    tell(one, other)
    tell(other, one)
    assert (one.of("a"), other.of("a")) == (3, 3)


def test_what_is_said_twice_or_out_of_order_counts_once() -> None:
    clock = Clock()
    one = SharedCounts(60, clock)
    said = []
    for _ in range(3):
        one.add("a")
        said += one.changes()
    assert len(said) == 3
    for order in permutations(said):
        other = SharedCounts(60, clock)
        for counts in (*order, *order):
            other.merge(counts)
        assert other.of("a") == 3


def test_only_what_changed_is_said_and_what_could_not_be_is_said_again() -> None:
    one = SharedCounts(60, Clock())
    assert one.changes() == []
    one.add("a")
    one.add("b")
    [said] = one.changes()
    assert said.counts == {"a": 1, "b": 1}
    assert one.changes() == []
    one.unsent(said)
    one.add("a")
    [again] = one.changes()
    assert again.counts == {"a": 2, "b": 1}


def test_ones_own_counts_that_come_back_are_not_counted_again() -> None:
    one = SharedCounts(60, Clock())
    one.add("a")
    tell(one, one)
    assert one.of("a") == 1


def test_a_period_begins_at_nothing_and_what_is_late_still_reaches_its_own() -> None:
    clock = Clock(659.0)
    one, other = SharedCounts(60, clock), SharedCounts(60, clock)
    one.add("a")
    clock.now = 660.0
    assert (one.of("a"), one.left(), one.began()) == (0, 60.0, 660.0)
    one.add("a", 5)
    said = tell(one, other)
    assert [counts.counts for counts in said] == [{"a": 1}, {"a": 5}]
    assert other.of("a") == 5


@pytest.mark.parametrize("ahead", [-1.0, 1.0])
def test_clocks_that_differ_by_a_little_lose_nothing(ahead: float) -> None:
    clock, its = Clock(659.5), Clock(659.5 + ahead)
    one, other = SharedCounts(60, clock), SharedCounts(60, its)
    other.add("a")
    tell(other, one)
    clock.now, its.now = 659.6, 659.6 + ahead
    assert one.of("a") == (0 if ahead > 0 else 1)
    clock.now = 660.0
    assert one.of("a") == (1 if ahead > 0 else 0)


def test_what_is_of_another_time_or_of_other_periods_changes_nothing() -> None:
    one = SharedCounts(60, Clock())
    for period, seconds in ((8, 60), (12, 60), (10, 3600)):
        one.merge(Counts(process="p", period=period, seconds=seconds, counts={"a": 1}))
    assert one.of("a") == 0
    assert len(one._periods) == 1


def test_a_long_life_keeps_three_periods_at_most() -> None:
    clock = Clock()
    one = SharedCounts(60, clock)
    for _ in range(100):
        one.add("a")
        clock.now += 60
    assert len(one._periods) <= 3
