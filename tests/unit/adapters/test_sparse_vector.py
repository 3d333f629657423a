"""What becomes a sparse vector, of what bge-m3 says of each token."""

from __future__ import annotations

import json
import math

import pytest

from adapters.embedders.bge_m3 import HEAVIEST, MOST_WEIGHTS, BgeM3Embedder, BgeM3SparseEmbedder, sparse_vector
from pipelines.runtime.embedder import is_sparse

CLS, PAD, EOS = 0, 1, 2
EMPTY = {CLS, PAD, EOS}


def test_of_a_token_the_greatest_weight_counts_and_padding_does_not() -> None:
    tokens = [CLS, 7, 8, 7, 9, EOS]
    assert sparse_vector(tokens, [0.9, 0.1, 0.2, 0.3, 0.0, 0.9, 0.9, 0.9], EMPTY) == {"7": 0.3, "8": 0.2}


@pytest.mark.parametrize("weight", [0.0, -1.0, 0.00004, math.nan, -math.inf])
def test_what_weighs_nothing_is_left_out(weight: float) -> None:
    assert sparse_vector([7, 8], [weight, 0.5], EMPTY) == {"8": 0.5}


def test_weights_are_what_elasticsearch_takes() -> None:
    found = sparse_vector([7, 8], [math.inf, 1 / 3], EMPTY)
    assert json.loads(json.dumps(found, allow_nan=False)) == {"7": HEAVIEST, "8": 0.3333}


def test_a_long_text_keeps_its_heaviest_tokens() -> None:
    many = range(10, 8_000)
    found = sparse_vector(many, [each / 10_000 for each in many], EMPTY)
    assert list(found) == [str(each) for each in range(7_999, 7_999 - MOST_WEIGHTS, -1)]


def test_the_fingerprint_says_that_there_are_sparse_vectors() -> None:
    plain, sparse = BgeM3Embedder("BAAI/bge-m3"), BgeM3SparseEmbedder("BAAI/bge-m3")
    assert (is_sparse(plain.fingerprint), is_sparse(sparse.fingerprint)) == (False, True)
