"""Grouping by meaning: which of many short texts mean the same.

vectors ─▶ less the middle of all and that of their language ─▶ average linkage, cut at a distance ─▶ a number each

Vectors of questions lie in a narrow cone, those of one language in a narrower one. Without the middle of each, distance
means the same for every model and site, and a question meets its translation: on the tuned half of `bench gaps` the
adjusted Rand index is at best .74 without that, .86 with. Average linkage gives the same groups each time, needs no
number of groups, and does not chain; what else was tried: docs/decisions/021-gaps.md.

Two groups that are each other's nearest become one. The way to such two is a chain: from a group to its nearest, to
that one's nearest, and so on, in steps that only get shorter (Benzécri, 1982; Müllner, 2011, Modern hierarchical,
agglomerative clustering algorithms).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pipelines.runtime.embedder import Matrix32
from schemas.compact import expand

# Mean cosine distance of two groups, without the middles, up to which they are one. On the tuned half the adjusted Rand
# index is .70 to .86 from here to .80; among thousands of other questions, which lie closer, it is best at .60.
APART = 0.66
# Questions that a middle must be the middle of before it counts half: less is known of few, and a site where all ask
# the same would find nothing in common but the question itself.
FEW = 20
# Texts that are linked: time and memory grow with the square, 5,000 take 2 seconds and 200 MB. Those asked most are
# linked; others join the group they are nearest to, if they are near enough.
MOST_LINKED = 5_000
BLOCK = 1_000  # of the others, compared at once

Numbers = NDArray[np.int64]


def grouped(
    vectors: Matrix32, langs: Sequence[str], asked: Sequence[int], common: bytes = b"", apart: float = APART
) -> Numbers:
    """The number of each text's group: 0, 1, ... in the order in which they first appear.

    Args:
        vectors: (n, dims), each of length 1; of distinct texts.
        langs: of each text.
        asked: how often each was.
        common: what all vectors of the model have in common, as schemas.compact has it; empty: not measured.
        apart: mean cosine distance of two groups, without the middles, up to which they are one.
    """
    if len(vectors) < 2:
        return np.zeros(len(vectors), dtype=np.int64)
    moved = centred(vectors, langs, common)
    order = np.argsort(-np.asarray(asked), kind="stable")
    most_asked, rest = np.sort(order[:MOST_LINKED]), np.sort(order[MOST_LINKED:])
    numbers = np.empty(len(vectors), dtype=np.int64)
    numbers[most_asked] = linked(1 - moved[most_asked] @ moved[most_asked].T, apart)
    if len(rest):
        numbers[rest] = _joined(moved[rest], moved[most_asked], numbers[most_asked], apart)
    first, place = np.unique(numbers, return_index=True)
    by_appearance = np.empty(len(first), dtype=np.int64)
    by_appearance[np.argsort(place, kind="stable")] = np.arange(len(first))
    ordered: Numbers = by_appearance[np.searchsorted(first, numbers)]
    return ordered


def centred(vectors: Matrix32, langs: Sequence[str], common: bytes = b"") -> Matrix32:
    """The vectors without the middle of all and that of their language, of length 1 again.

    Middles of few texts are drawn to what is known of all: that of a language to that of all texts, that of all to the
    model's.
    """
    count = len(vectors)
    total = vectors.sum(axis=0)
    if common:
        known = expand(common, 1)[0]
        # As long as these texts have it: what all vectors have in common is longer of questions than of pages.
        middle = (total + FEW * known * float((vectors @ known).mean())) / (count + FEW)
    else:
        middle = total / count
    moved = np.empty_like(vectors)
    spoken = np.asarray(langs)
    for lang in dict.fromkeys(langs):
        own = spoken == lang
        moved[own] = vectors[own] - (vectors[own].sum(axis=0) + FEW * middle) / (own.sum() + FEW)
    lengths = np.linalg.norm(moved, axis=1, keepdims=True)
    np.divide(moved, lengths, out=moved, where=lengths > 1e-6)
    return moved


def _joined(vectors: Matrix32, linked: Matrix32, numbers: Numbers, apart: float) -> Numbers:
    """The group of each by the mean of its cosines to the group's texts; a number of its own if it is near none."""
    names, place, sizes = np.unique(numbers, return_inverse=True, return_counts=True)
    means = np.zeros((len(names), linked.shape[1]), dtype=np.float32)
    np.add.at(means, place, linked)
    means /= sizes[:, None]
    joined = np.empty(len(vectors), dtype=np.int64)
    free = int(names.max()) + 1
    for begin in range(0, len(vectors), BLOCK):
        cosines = vectors[begin : begin + BLOCK] @ means.T
        nearest = cosines.argmax(axis=1)
        near = cosines[np.arange(len(nearest)), nearest] >= 1 - apart
        own = free + begin + np.arange(len(nearest))
        joined[begin : begin + BLOCK] = np.where(near, names[nearest], own)
    return joined


AWAY = np.inf  # the distance to itself, and to what is part of another group or complete


def linked(distances: NDArray[np.float32], apart: float) -> NDArray[np.int64]:
    """The group of each, as the number of its first member.

    Args:
        distances: (n, n), of each to each; left as they are.
        apart: mean distance of the members of two groups up to which they are one.
    """
    # A product of matrices may round the two ways of a pair differently, and a chain would never end.
    distances = np.maximum(distances, distances.T)
    np.fill_diagonal(distances, AWAY)
    groups = np.arange(len(distances))
    sizes = np.ones(len(distances))
    unfinished = np.ones(len(distances), dtype=bool)
    for first in range(len(distances)):
        chain: list[int] = []
        while unfinished[first]:
            chain = chain or [first]
            last = chain[-1]
            nearest = int(distances[last].argmin())
            if not distances[last, nearest] <= apart:
                # Complete: what others make of each other is no nearer to it than they are.
                gone = chain.pop()
            elif len(chain) > 1 and distances[last, nearest] == distances[last, chain[-2]]:
                kept, gone = sorted((chain.pop(), chain.pop()))
                means = np.average(distances[[kept, gone]], axis=0, weights=sizes[[kept, gone]])
                means[kept] = AWAY
                distances[kept] = distances[:, kept] = means
                sizes[kept] += sizes[gone]
                groups[groups == gone] = kept
            else:
                chain.append(nearest)
                continue
            distances[gone] = distances[:, gone] = AWAY
            unfinished[gone] = False
    return groups
