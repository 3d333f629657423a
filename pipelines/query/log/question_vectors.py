"""Vectors of logged questions: kept with them, else made now.

A vector comes with the question: it was searched by it (schemas.outcome.Outcome.vector), and embedding 10,000 questions
again takes a minute. Made here are those of questions that were masked, failed before they were searched, are older
than vectors in the log, or were searched by another model than the live index has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np

from pipelines.query.log.gaps import Wording
from pipelines.query.search.ports import SearchEmbedder
from pipelines.runtime.embedder import Matrix32


async def vectors_of(model: SearchEmbedder, wordings: Sequence[Wording]) -> tuple[Matrix32, int]:
    """A row a wording, and how many had to be made. One after the other: visitors' questions go in between.

    Raises: Retryable. Permanent: of the embedder.
    """
    rows, made = np.empty((len(wordings), model.dims), dtype=np.float32), 0
    for place, wording in enumerate(wordings):
        kept = (one.vector for one in wording.questions if one.vector and one.vector.model == model.fingerprint)
        known = next((each for each in kept if len(each.data) == model.dims), None)
        if known is not None:
            rows[place] = known.vector
        else:
            rows[place] = await model.query(wording.text)
            made += 1
        if not place % 500:
            await asyncio.sleep(0)
    return rows, made
