"""The intervals of benchmarks."""

from __future__ import annotations

import numpy as np

from bench.report import paired_interval


def test_the_interval_covers_the_true_mean_and_is_always_the_same() -> None:
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(100):
        low, high = paired_interval(rng.normal(0.2, 1.0, 80))
        covered += low <= 0.2 <= high
    assert 88 <= covered <= 100
    differences = rng.normal(size=40)
    assert paired_interval(differences) == paired_interval(differences)
