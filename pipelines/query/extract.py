"""Extract: without a model, an answer is a quotation: the sentences that fit the question best (SPEC B9).

    top sources ─▶ sentences ─▶ .7 cosine + .3 shared words - .36 x rank of the source ─▶ the best three, in their order

The recipe and its figures are in PEERS.md; cosine and shared words are measured in standard deviations among the
candidates of the question.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipelines.query.ports import Embedder
from pipelines.query.sentences import Kind, plain, split
from pipelines.query.words import stems
from schemas.answer import Citation, Token
from schemas.query import Source

READ = 5  # sources
LIMIT = 3  # sentences
COSINE, OVERLAP, RANK = 0.7, 0.3, 0.36  # PEERS.md, extractive answers
# The bundled embedder does some 40 sentences a second on two cores; what is read beyond this is ranked by words only.
MAX_EMBEDDED = 40


@dataclass(frozen=True)
class Candidate:
    """A sentence, list item or table row of a source."""

    n: int  # of its source
    rank: int  # of its source, from 0
    order: int  # position in its source
    text: str  # Markdown, as on the page
    plain: str
    kind: Kind
    above: str = ""  # the table header or heading it stands under


@dataclass(frozen=True)
class Extract:
    """A quotation: events to stream, and the same as a whole. Empty if there is nothing to quote."""

    events: tuple[Token | Citation, ...]

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, Token))

    @property
    def citations(self) -> tuple[Citation, ...]:
        return tuple(event for event in self.events if isinstance(event, Citation))


def candidates(sources: Sequence[Source]) -> list[Candidate]:
    """What may be quoted, best source first, in reading order. Nothing twice."""
    found: dict[str, Candidate] = {}
    for rank, source in enumerate(sources[:READ]):
        heading = ""
        sentences = split(source.text, source.lang)
        headers = {sentence.header for sentence in sentences}
        for order, sentence in enumerate(sentences):
            text = source.text[sentence.start : sentence.end]
            if sentence.kind == "heading":
                heading = text
                continue
            words = plain(text)
            if (sentence.start, sentence.end) in headers or not words:
                continue
            above = source.text[slice(*sentence.header)] if sentence.header else heading
            found.setdefault(words, Candidate(source.n, rank, order, text, words, sentence.kind, above))
    return list(found.values())


async def extract(
    question: str, sources: Sequence[Source], embedder: Embedder, lead_in: str, limit: int = LIMIT
) -> Extract:
    """Quote at most `limit` sentences of the sources, each with its citation, after a `lead_in` that says so.

    Raises:
        Retryable, Permanent: of the embedder.
    """
    pool = candidates(sources)
    if not pool:
        return Extract(())
    overlap = _overlaps(question, pool)
    likely = sorted(range(len(pool)), key=lambda i: (-overlap[i] + RANK * pool[i].rank, i))[:MAX_EMBEDDED]
    pool = [pool[i] for i in sorted(likely)]
    overlap = overlap[sorted(likely)]
    ...
