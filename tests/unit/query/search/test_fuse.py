"""Fusing two rankings."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.query.search.fuse import Weights, fuse, known_share, standing
from pipelines.query.search.ports import Candidate


def hit(ord: int, cosine: float | None = None, bm25: float | None = None) -> Candidate:
    return Candidate(page_key="town:en:p", field="content", ord=ord, cosine=cosine, bm25=bm25)


def order(hits: list[Candidate]) -> list[int]:
    return [h.ord for h in hits]


DENSE = [hit(0, 0.90), hit(1, 0.86), hit(2, 0.80)]
KEYWORD = [hit(2, bm25=12.0), hit(3, bm25=3.0), hit(0, bm25=2.0)]


def test_nothing_found_is_nothing() -> None:
    assert fuse([], []) == []


def test_one_side_alone_keeps_its_order() -> None:
    assert order(fuse(DENSE, [])) == [0, 1, 2]
    assert order(fuse([], KEYWORD, known=0.0)) == [2, 3, 0]


def test_a_chunk_found_by_both_comes_once_with_both_figures() -> None:
    fused = {h.ord: h for h in fuse(DENSE, KEYWORD)}
    assert (fused[2].cosine, fused[2].bm25) == (0.80, 12.0)
    assert (fused[1].bm25, fused[3].cosine) == (None, None)
    assert len(fused) == 4


def test_what_one_side_did_not_find_counts_there_as_its_last() -> None:
    scores = {h.ord: h.score for h in fuse(DENSE, [hit(3, bm25=5.0)])}
    assert scores[3] == scores[2]


def test_a_strong_keyword_hit_wins_when_the_index_knows_the_question() -> None:
    assert order(fuse(DENSE, KEYWORD, known=1.0, weights=Weights(0.4, 0.6)))[0] == 2


def test_keywords_of_an_unknown_language_do_not_count() -> None:
    assert order(fuse(DENSE, KEYWORD, known=0.0))[:2] == [0, 1]


def test_the_keywords_part_is_the_square_root_of_what_the_index_knows() -> None:
    a, b = hit(0, 0.9), hit(1, 0.8)
    words = [hit(1, bm25=9.0), hit(0, bm25=1.0)]
    gaps = []
    for known in (0.25, 1.0):
        scores = {h.ord: standing(h.score) for h in fuse([a, b], words, known, Weights(0.0, 1.0))}
        gaps.append(scores[1] - scores[0])
    assert gaps[0] == pytest.approx(gaps[1] / 2)


def test_a_standing_is_what_the_score_was_made_of() -> None:
    assert standing(0.5) == 0
    assert standing(0.7) == pytest.approx(0.847, abs=1e-3)
    assert standing(0.0) < standing(1e-6) < standing(1 - 1e-6) < standing(1.0)


def test_a_single_hit_is_average() -> None:
    assert [h.score for h in fuse([hit(0, 0.9)], [])] == [0.5]


def test_hits_a_hair_apart_are_almost_equal() -> None:
    first, second = fuse([hit(0, 0.9001), hit(1, 0.9)], [])
    assert first.ord == 0
    assert first.score - second.score < 0.01


def test_a_tiny_difference_of_cosines_yields_to_a_clear_keyword() -> None:
    assert order(fuse([hit(0, 0.9001), hit(1, 0.9)], [hit(1, bm25=9.0), hit(5, bm25=1.0)]))[0] == 1


def test_equal_hits_have_a_fixed_order() -> None:
    assert order(fuse([hit(3, 0.8), hit(1, 0.8), hit(2, 0.8)], [])) == [1, 2, 3]


SCORES = st.floats(-1, 1, allow_nan=False)
LISTS = st.lists(st.tuples(st.integers(0, 9), SCORES), max_size=10, unique_by=lambda pair: pair[0])


@given(LISTS, LISTS, st.floats(0, 1))
def test_scores_are_bounded_and_sorted_and_no_chunk_is_lost(
    dense: list[tuple[int, float]], keyword: list[tuple[int, float]], known: float
) -> None:
    fused = fuse([hit(o, c) for o, c in dense], [hit(o, bm25=abs(c)) for o, c in keyword], known)
    assert {h.ord for h in fused} == {o for o, _ in dense} | {o for o, _ in keyword}
    assert len(fused) == len({h.ord for h in fused})
    scores = [h.score for h in fused]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score < 1 for score in scores)


@given(LISTS, LISTS, st.floats(0, 1))
def test_better_on_both_sides_is_never_worse(
    dense: list[tuple[int, float]], keyword: list[tuple[int, float]], known: float
) -> None:
    fused = fuse([hit(o, c) for o, c in dense], [hit(o, bm25=abs(c)) for o, c in keyword], known)
    both = [(h.cosine, h.bm25, h.score) for h in fused if h.cosine is not None and h.bm25 is not None]
    for (cosine, bm25, score), (other_cosine, other_bm25, other) in product(both, both):
        if cosine >= other_cosine and bm25 >= other_bm25:
            assert score >= other - 1e-12


@pytest.mark.parametrize(
    ("terms", "total", "share"),
    [
        ([], 100, 0.0),
        ([("xyzzy", 0)], 100, 0.0),
        ([("pool", 3)], 100, 1.0),
        ([("pool", 3)], 0, 1.0),
    ],
)
def test_known_share_at_its_ends(terms: list[tuple[str, int]], total: int, share: float) -> None:
    assert known_share(terms, total) == share


def test_a_rare_known_word_counts_more_than_a_common_one() -> None:
    assert known_share([("pool", 1), ("xyzzy", 0)], 100) > known_share([("the", 90), ("xyzzy", 0)], 100)
