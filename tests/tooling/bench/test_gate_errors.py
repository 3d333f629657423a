"""The simulation behind the gate's error rates: what it draws has the loss that it says."""

from __future__ import annotations

import numpy as np
import pytest

from bench.gate_errors import KINDS, LOSSES, Kind, shares


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_kind_loses_what_it_says(kind: Kind) -> None:
    for loss in LOSSES:
        won, lost = kind.shares(loss)
        assert kind.won * won + kind.lost * lost == pytest.approx(-loss)
        assert won + lost <= 1


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_with_300_cases_one_of_twenty_passes_that_loses_the_margin(kind: Kind) -> None:
    """docs/reference/measures.md has the whole table, from 10,000 each."""
    rng = np.random.default_rng(3)
    passed, _, _ = shares(kind, 300, 0.03, 0.03, 400, rng)
    _, worse, undecided = shares(kind, 300, 0.08, 0.03, 200, rng)
    assert passed <= 0.05 + 0.022  # two standard errors of 400 draws
    assert worse >= 0.8 - 0.06
    assert undecided <= 0.26
