"""A byte per component: near enough, stable, and refused where it does not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.compact import compact, expand

WIDEST = 0.005  # error of a cosine


@given(seed=st.integers(0, 2**32 - 1), dims=st.sampled_from([384, 1024]), peak=st.floats(1, 3))
def test_cosines_are_what_they_were(seed: int, dims: int, peak: float) -> None:
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(8, dims)).astype(np.float32)
    vectors[:, 0] *= peak  # models have components that stand out
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    back = expand(b"".join(compact(vectors)), len(vectors))
    assert back.dtype == np.float32
    assert abs(back @ vectors.T - vectors @ vectors.T).max() < WIDEST
    np.testing.assert_allclose(np.linalg.norm(back, axis=1), 1, atol=1e-5)


@given(seed=st.integers(0, 2**32 - 1))
def test_what_was_compact_once_stays_as_it_is(seed: int) -> None:
    data = compact(np.random.default_rng(seed).normal(size=(4, 384)))
    assert compact(expand(b"".join(data), 4)) == data


def test_a_row_costs_a_byte_a_component() -> None:
    assert [len(row) for row in compact(np.ones((3, 384)))] == [384] * 3


def test_nothing_and_a_vector_of_nothing_come_back() -> None:
    assert compact(np.empty((0, 384))) == []
    assert len(expand(b"", 0)) == 0
    assert expand(b"".join(compact(np.zeros((1, 4)))), 1).tolist() == [[0, 0, 0, 0]]


@pytest.mark.parametrize(("data", "rows"), [(b"", 1), (b"abc", 2), (b"abc", 0)])
def test_what_does_not_fit_is_refused(data: bytes, rows: Any) -> None:
    with pytest.raises(ValueError, match="vectors"):
        expand(data, rows)
