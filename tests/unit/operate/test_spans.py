"""What is read for the sake of some records: all of them, at most twice as much, and in few stretches."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pipelines.operate.record_places import SEEK, count, holds, runs_of, spans_for, union, within

offsets = st.sets(st.integers(0, 3_000), max_size=60).map(sorted)


@given(offsets)
def test_spans_hold_every_run_and_are_in_order(own: list[int]) -> None:
    spans = spans_for(runs_of(own))
    read = [offset for start, end in spans for offset in range(start, end)]
    assert read == sorted(set(read))
    assert set(own) <= set(read)


@given(offsets)
def test_at_most_as_much_again_is_read_along_unless_reading_through_is_quicker(own: list[int]) -> None:
    spans = spans_for(runs_of(own))
    read = sum(end - start for start, end in spans)
    assert read <= 2 * len(own) or len(spans) == 1
    if len(spans) > 1:
        assert len(spans) * SEEK < spans[-1][1] - spans[0][0]


def test_the_smallest_gaps_are_read_along_first() -> None:
    assert spans_for([(0, 1), (4, 5), (1_000, 1_000)]) == [(0, 6), (1_000, 1_001)]
    assert spans_for([(0, 0), (9, 9), (11, 11), (1_000, 1_000)]) == [(0, 1), (9, 12), (1_000, 1_001)]
    assert spans_for([]) == []


def test_what_is_half_of_a_topic_is_read_through() -> None:
    assert spans_for(runs_of(range(0, 1_000, 2))) == [(0, 999)]
    assert spans_for(runs_of(range(0, 1_000, 20))) == [(0, 981)]
    assert len(spans_for(runs_of(range(0, 1_000, 40)))) == 25


@given(offsets, offsets, st.integers(0, 3_000), st.integers(0, 3_000))
def test_runs_are_sets_of_offsets(one: list[int], other: list[int], start: int, stop: int) -> None:
    both = union([*runs_of(one), *runs_of(other)])
    assert both == runs_of(sorted({*one, *other}))
    assert count(both) == len({*one, *other})
    inside = within(both, start, stop)
    assert [o for o in range(3_001) if holds(inside, o)] == [o for o in sorted({*one, *other}) if start <= o < stop]
