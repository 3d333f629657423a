"""Average linkage, cut at a distance: groups of what lies near each other on average.

Two groups that are each other's nearest become one. The way to such two is a chain: from a group to its nearest, to
that one's nearest, and so on, in steps that only get shorter (Benzécri, 1982; Müllner, 2011, Modern hierarchical,
agglomerative clustering algorithms). Time and memory grow with the square.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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
