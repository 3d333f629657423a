"""Which texts a model reads in one call: of like length, and never more tokens than its limit."""

from __future__ import annotations

from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from adapters.embedders.local import batches


def computed(lengths: list[int], calls: list[list[int]]) -> int:
    """Tokens, padding included."""
    return sum(len(call) * max(lengths[place] for place in call) for call in calls)


@given(st.lists(st.integers(2, 8192)), st.integers(1, 20_000))
def test_every_text_is_read_once_within_the_limit(lengths: list[int], limit: int) -> None:
    calls = batches(lengths, limit)
    assert sorted(chain(*calls)) == list(range(len(lengths)))
    for call in calls:
        assert len(call) == 1 or computed(lengths, [call]) <= limit


def test_texts_of_like_length_go_together() -> None:
    lengths = [100, 10, 100, 10, 100, 10]
    assert batches(lengths, 300) == [[1, 3, 5], [0, 2, 4]]
    assert computed(lengths, batches(lengths, 300)) == sum(lengths)


def test_as_many_as_fit_go_together() -> None:
    assert batches([100] * 5, 200) == [[0, 1], [2, 3], [4]]
    assert batches([100] * 5, 199) == [[0], [1], [2], [3], [4]]


def test_nothing_is_no_call() -> None:
    assert batches([], 100) == []
