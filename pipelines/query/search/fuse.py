"""One ranking out of two: what the vectors found and what the keywords found.

Cosines and BM25 scores have nothing in common but their order and their spread, so each list is measured in its own
standard deviations and the two are added. The keywords' part shrinks with the share of the question that the index
has ever seen: a question in another language than the pages shares only a name or two with them, and ranking by those
ruins what the vectors got right (German questions on English pages, plain mixture: page@1 .91 falls to .77).

The part is the square root of that share: half a question known is more than half a help.

Weights chosen on XQuAD, pages 0-23, and checked on pages 24-47, bundled embedder, 30 candidates from each side; the
figures are in docs/reference/quality.md. Lifting pages with several hits, or with a title like the question, gained
nothing: page@1 of German questions on English pages fell from .924 to .921 and below.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from pipelines.query.search.ports import Candidate

# Less spread than this is noise: without a floor two hits a hair apart would be as far apart as any two.
COSINE_SPREAD = 0.01  # half as much as usual among the bundled embedder's 30 best
BM25_SPREAD = 0.05  # of the best hit's score


AnyCandidate = TypeVar("AnyCandidate", bound=Candidate)


@dataclass(frozen=True)
class Weights:
    """Parts of the two rankings in the sum."""

    dense: float = 0.6
    keyword: float = 0.4  # for a question whose every word the index knows


def fuse(
    dense: Sequence[AnyCandidate],
    keyword: Sequence[AnyCandidate],
    known: float = 1.0,
    weights: Weights = Weights(),
    size: int | None = None,
) -> list[AnyCandidate]:
    """The best `size` (None: all), best first, each chunk once, with both sides' figures and the fused `score`.

    A chunk that one side did not find counts there as much as the last one that side did find.

    Args:
        dense: hits with `cosine`, in any order.
        keyword: hits with `bm25`, in any order.
        known: `known_share` of the question, 0..1. Without dense hits there is nothing to guard.
    """
    found = {hit.place: hit for hit in (*keyword, *dense)}
    cosines = {hit.place: hit.cosine for hit in dense}
    bm25s = {hit.place: hit.bm25 for hit in keyword}
    by_cosine = _standings([cosines.get(place) for place in found], COSINE_SPREAD)
    best = max((bm25 for bm25 in bm25s.values() if bm25 is not None), default=0.0)
    by_keyword = _standings([bm25s.get(place) for place in found], BM25_SPREAD * best)
    share = math.sqrt(known) if dense else 1.0
    scores = {
        place: _bounded(weights.dense * cosine + weights.keyword * share * bm25)
        for place, cosine, bm25 in zip(found, by_cosine, by_keyword, strict=True)
    }
    return [
        replace(found[place], cosine=cosines.get(place), bm25=bm25s.get(place), score=scores[place])
        for place in sorted(found, key=lambda place: (-scores[place], place))[:size]
    ]


def known_share(terms: Iterable[tuple[str, int]], total: int) -> float:
    """How much of the question the index knows: idf of the terms it has, divided by idf of all, 0..1.

    Args:
        terms: the question's distinct terms, each with the number of chunks that have it.
        total: chunks in the index.
    """
    mass = known = 0.0
    for _, doc_freq in terms:
        weight = idf(doc_freq, total)
        mass += weight
        known += weight if doc_freq else 0.0
    return known / mass if mass else 0.0


def idf(doc_freq: int, total: int) -> float:
    """How much a term says that `doc_freq` of `total` chunks have, as in Lucene's BM25."""
    return math.log(1 + (max(total, doc_freq) - doc_freq + 0.5) / (doc_freq + 0.5))


def _standings(values: Sequence[float | None], floor: float) -> list[float]:
    """Standard scores; where there is no value, that of the least."""
    found = [value for value in values if value is not None]
    if not found:
        return [0.0] * len(values)
    least = min(found)
    filled = np.array([least if value is None else value for value in values])
    spread = max(float(filled.std()), floor)
    standings: list[float] = ((filled - filled.mean()) / spread).tolist() if spread else [0.0] * len(values)
    return standings


def _bounded(value: float) -> float:
    """Into 0..1, order kept; an average candidate gets one half."""
    return 1 / (1 + math.exp(-value))


def standing(score: float) -> float:
    """Standard deviations above the average candidate, from a fused `score`."""
    inside = min(max(score, 1e-9), 1 - 1e-9)
    return math.log(inside / (1 - inside))
