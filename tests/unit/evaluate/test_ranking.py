"""Figures of a ranking: worked examples, and ir_measures on a thousand random ones."""

from __future__ import annotations

import random
from math import log2

import ir_measures
import pytest
from ir_measures import RR, R, Success, nDCG

from pipelines.evaluate.measures import hit, ndcg, recall, reciprocal_rank

FOUND = ["fees", "hours", "library", "bus"]


def test_worked_examples() -> None:
    """Right are the pages `library`, third, and `card`, not found."""
    right = {"library", "card"}
    assert hit(FOUND, right, 1) == 0
    assert hit(FOUND, right, 3) == 1
    assert reciprocal_rank(FOUND, right, 10) == pytest.approx(1 / 3)
    assert reciprocal_rank(FOUND, right, 2) == 0
    assert recall(FOUND, right, 10) == 0.5
    # (1 / log2(4)) / (1 / log2(2) + 1 / log2(3)) = 0.5 / 1.6309
    assert ndcg(FOUND, right, 10) == pytest.approx(0.5 / (1 + 1 / log2(3)))
    assert ndcg(FOUND, right, 10) == pytest.approx(0.3066, abs=1e-4)
    assert ndcg(["card", "library"], right, 10) == 1
    assert [figure([], right, 10) for figure in (hit, reciprocal_rank, recall, ndcg)] == [0, 0, 0, 0]


def test_they_are_those_of_ir_measures() -> None:
    rng = random.Random(17)
    pages = [f"p{n}" for n in range(30)]
    qrels, run, ours = [], [], {}
    for number in range(1_000):
        question = f"q{number}"
        found = rng.sample(pages, rng.randrange(1, 25))
        right = rng.sample(pages, rng.randrange(1, 6))
        qrels += [ir_measures.Qrel(question, page, 1) for page in right]
        run += [ir_measures.ScoredDoc(question, page, -place) for place, page in enumerate(found)]
        for depth in (1, 3, 10):
            ours[question, Success @ depth] = hit(found, right, depth)
            ours[question, RR @ depth] = reciprocal_rank(found, right, depth)
            ours[question, R @ depth] = recall(found, right, depth)
            ours[question, nDCG @ depth] = ndcg(found, right, depth)
    measures = list({measure for _, measure in ours})
    theirs = {(told.query_id, told.measure): told.value for told in ir_measures.iter_calc(measures, qrels, run)}
    assert theirs == pytest.approx(ours)
