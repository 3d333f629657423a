"""How well a score tells what can be answered from what cannot."""

from __future__ import annotations

import random

import pytest

from pipelines.evaluate.evaluation import auroc


def test_a_worked_example() -> None:
    """Of the six pairs 3>1, 3>2, 2>1 are right, 1<2 is wrong, and 2=2, 1=1 are half right: 4 of 6."""
    assert auroc([3, 2, 1], [1, 2]) == pytest.approx(4 / 6)
    assert auroc([1], [0]) == 1
    assert auroc([0], [1]) == 0
    assert auroc([5, 5], [5]) == 0.5
    assert auroc([], [1]) is None
    assert auroc([1], []) is None


def test_it_is_the_share_of_pairs_in_the_right_order() -> None:
    rng = random.Random(5)
    for _ in range(200):
        able = [rng.randrange(6) for _ in range(rng.randrange(1, 12))]
        unable = [rng.randrange(6) for _ in range(rng.randrange(1, 12))]
        pairs = [(a > u) + (a == u) / 2 for a in able for u in unable]
        assert auroc(able, unable) == pytest.approx(sum(pairs) / len(pairs))
