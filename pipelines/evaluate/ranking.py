"""How well pages are ranked: the usual figures of one question, all between 0 and 1.

Pages are given best first and without repeats; `right` are those that hold the answer, each as good as the others.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import fsum, log2


def hit(found: Sequence[str], right: Collection[str], depth: int) -> float:
    """hit@depth, also called success: whether any right page is among the first."""
    return float(any(page in right for page in found[:depth]))


def reciprocal_rank(found: Sequence[str], right: Collection[str], depth: int) -> float:
    """1 / place of the first right page; 0 below `depth`. The mean over questions is MRR (Voorhees, 1999)."""
    return next((1 / place for place, page in enumerate(found[:depth], 1) if page in right), 0.0)


def recall(found: Sequence[str], right: Collection[str], depth: int) -> float:
    """Share of the right pages that are among the first."""
    return len(set(found[:depth]) & set(right)) / len(set(right))


def ndcg(found: Sequence[str], right: Collection[str], depth: int) -> float:
    """Normalised discounted cumulative gain (Järvelin and Kekäläinen, 2002), with gain 1 and discount log2(place + 1):
    1 when all right pages stand before all others."""
    gained = fsum(1 / log2(place + 1) for place, page in enumerate(found[:depth], 1) if page in right)
    return gained / fsum(1 / log2(place + 1) for place in range(1, min(len(set(right)), depth) + 1))
