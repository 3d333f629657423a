"""Whether a system knows what it cannot answer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def auroc(answerable: Sequence[float], unanswerable: Sequence[float]) -> float | None:
    """Chance that a question that can be answered scores higher than one that cannot; a tie is half of it.

    The area under the receiver operating characteristic (Hanley and McNeil, 1982). None where one side is empty.
    """
    if not answerable or not unanswerable:
        return None
    able, unable = np.asarray(answerable, dtype=float), np.sort(np.asarray(unanswerable, dtype=float))
    below, not_above = np.searchsorted(unable, able, "left"), np.searchsorted(unable, able, "right")
    return float((below + not_above).mean() / (2 * len(unable)))
