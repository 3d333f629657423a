"""Average linkage, against the definition: the two groups nearest on average become one, as long as any are near."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from pipelines.query.log.grouping import linked

Distances = NDArray[np.float32]


def distances_of(count: int, seed: int) -> Distances:
    places = np.random.default_rng(seed).standard_normal((count, 4)).astype(np.float32)
    return np.linalg.norm(places[:, None] - places, axis=2)


def by_definition(distances: Distances, apart: float) -> list[list[int]]:
    groups = [[each] for each in range(len(distances))]

    def far(pair: tuple[list[int], list[int]]) -> float:
        return float(distances[np.ix_(*pair)].mean(dtype=np.float64))

    while len(groups) > 1:
        one, other = min(combinations(groups, 2), key=far)
        if far((one, other)) > apart:
            break
        groups = [*(each for each in groups if each not in (one, other)), sorted(one + other)]
    return sorted(groups)


def members(numbers: NDArray[np.int64]) -> list[list[int]]:
    return sorted(np.flatnonzero(numbers == number).tolist() for number in set(numbers.tolist()))


@pytest.mark.parametrize("apart", [0.5, 1.5, 2.5, 9.0])
@pytest.mark.parametrize("seed", range(10))
def test_the_nearest_become_one_until_none_are_near(seed: int, apart: float) -> None:
    distances = distances_of(5 + 3 * seed, seed)
    numbers = linked(distances, apart)
    assert members(numbers) == by_definition(distances, apart)
    assert set(numbers.tolist()) == {group[0] for group in members(numbers)}


def test_what_lies_equally_far_comes_to_an_end() -> None:
    assert len(set(linked(np.ones((9, 9), np.float32), 1.0).tolist())) == 1
    assert len(set(linked(np.ones((9, 9), np.float32), 0.9).tolist())) == 9


def test_a_pair_rounded_two_ways_comes_to_an_end() -> None:
    """Each of three is nearest to the next of them, by a last digit."""
    less = np.nextafter(np.float32(1), np.float32(0))
    distances = np.array([[0, less, 1], [1, 0, less], [less, 1, 0]], np.float32)
    assert linked(distances, 1.0).tolist() == [0, 0, 0]


def test_the_distances_stay_as_they_are() -> None:
    distances = distances_of(6, 0)
    before = distances.copy()
    linked(distances, 2.0)
    assert (distances == before).all()
