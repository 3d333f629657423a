"""Extract: without a model, an answer is a quotation: the sentences that fit the question best (SPEC B9).

    best sources ─▶ sentences ─▶ .7 cosine + .3 shared words - .36 x rank of the source ─▶ the best, three at most

The recipe is from PEERS.md; cosine and shared words are measured in standard deviations among the candidates of the
question, and what is far behind the best is not quoted. Figures: docs/reference/quality.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from pipelines.query.ports import Embedder
from pipelines.query.sentences import Kind, Sentence, cut, plain, split
from pipelines.words import stems
from schemas.answer import Citation, Token
from schemas.query import Source

READ = 5  # sources
LIMIT = 3  # sentences
# How far behind the best a sentence may be and still be quoted, in the score's own units: what is further off is mostly
# about something else. Costs less than a point of the answers, and saves a quarter of what a visitor reads.
BEHIND = 2.0
COSINE, OVERLAP, RANK = 0.7, 0.3, 0.36  # PEERS.md, extractive answers
# The bundled embedder does some 40 sentences a second on two cores: a visitor waits for these.
# XQuAD en: the answer is among the picks for .945 of the questions without a limit, .943 with 24, .941 with 16.
MAX_EMBEDDED = 24
LIST_TOGETHER = 600  # characters: a list up to this length is quoted whole, with the words that introduce it
LONGEST = 600  # characters quoted of one sentence


@dataclass(frozen=True)
class Candidate:
    """What can be quoted: a sentence, a list item, a whole short list, a table row."""

    n: int  # of its source
    rank: int  # of its source, from 0
    order: int  # position in its source
    text: str  # Markdown, as on the page
    kind: Kind
    above: str = ""  # Markdown: the words that introduce the list item, the header of the table

    @property
    def read(self) -> str:
        """What it says, with what stands above it."""
        return plain(f"{self.above}\n{self.text}")


@dataclass(frozen=True)
class Extract:
    """A quotation as events to stream. Empty if there is nothing to quote."""

    events: tuple[Token | Citation, ...]

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, Token))

    @property
    def citations(self) -> tuple[Citation, ...]:
        return tuple(event for event in self.events if isinstance(event, Citation))


def candidates(sources: Sequence[Source]) -> list[Candidate]:
    """Everything in the best sources that can be quoted, in reading order, nothing twice."""
    found: dict[str, Candidate] = {}
    for rank, source in enumerate(sources[:READ]):
        for order, (text, kind, above) in enumerate(_units(source)):
            if len(text) > LONGEST and kind != "code":
                text = f"{cut(text, LONGEST, source.lang)} …"
            candidate = Candidate(source.n, rank, order, text, kind, above)
            if any(ch.isalnum() for ch in candidate.text):
                found.setdefault(candidate.read, candidate)
    return list(found.values())


async def extract(
    question: str, sources: Sequence[Source], embedder: Embedder, lead_in: str, limit: int = LIMIT
) -> Extract:
    """Quote at most `limit` candidates, each with its citation, after a `lead_in` that says that it is a quotation.

    Raises:
        Retryable, Permanent: of the embedder.
    """
    pool = candidates(sources)
    if not pool:
        return Extract(())
    overlap = _overlap(question, pool)
    ranks = np.array([candidate.rank for candidate in pool])
    likely = np.sort(np.argsort(RANK * ranks - _standard(overlap), kind="stable")[:MAX_EMBEDDED])
    pool = [pool[i] for i in likely]
    vectors = await embedder.passages([candidate.read for candidate in pool])
    cosine = vectors @ await embedder.query(question)
    score = COSINE * _standard(cosine) + OVERLAP * _standard(overlap[likely]) - RANK * ranks[likely]
    best = [pool[i] for i in np.argsort(-score, kind="stable")[:limit] if score[i] >= score.max() - BEHIND]
    return Extract(tuple(_quotation(best, lead_in)))


def _overlap(question: str, pool: Sequence[Candidate]) -> NDArray[np.float64]:
    """Share of the question's words in each candidate, rare words counting more."""
    asked = set(stems(question))
    found = [asked.intersection(stems(candidate.read)) for candidate in pool]
    having = Counter(stem for stems_ in found for stem in stems_)
    idf = {stem: math.log(1 + (len(pool) - having[stem] + 0.5) / (having[stem] + 0.5)) for stem in asked}
    total = sum(idf.values()) or 1.0
    return np.array([sum(idf[stem] for stem in stems_) / total for stems_ in found])


def _standard(values: NDArray[np.floating]) -> NDArray[np.float64]:
    spread = float(values.std())
    return np.asarray((values - values.mean()) / spread if spread > 1e-9 else np.zeros(len(values)), dtype=np.float64)


def _units(source: Source) -> Iterator[tuple[str, Kind, str]]:
    """(text, kind, what stands above it) of whatever can be quoted by itself."""
    sentences = split(source.text, source.lang)
    headers = {sentence.header for sentence in sentences}
    heading = ""
    at = 0
    while at < len(sentences):
        sentence = sentences[at]
        at += 1
        text = source.text[sentence.start : sentence.end]
        items = _items(sentences, at)
        if sentence.kind == "heading":
            heading = text
        elif items and text.endswith(":"):
            if items[-1].end - sentence.start <= LIST_TOGETHER:
                yield source.text[sentence.start : items[-1].end], "item", heading
            else:
                yield from ((source.text[item.start : item.end], "item", text) for item in items)
            at += len(items)
        elif sentence.header is not None:
            yield text, "row", source.text[slice(*sentence.header)]
        elif (sentence.start, sentence.end) not in headers:
            yield text, sentence.kind, heading if sentence.kind == "item" else ""


def _items(sentences: Sequence[Sentence], at: int) -> list[Sentence]:
    """The list items from `at` on, unbroken."""
    items: list[Sentence] = []
    for sentence in sentences[at:]:
        if sentence.kind != "item":
            break
        items.append(sentence)
    return items


def _quotation(picked: Sequence[Candidate], lead_in: str) -> Iterator[Token | Citation]:
    """A block quotation per source, best source first, sentences in reading order."""
    yield Token(text=lead_in)
    at = len(lead_in)
    ordered = sorted(picked, key=lambda c: (c.rank, c.order))
    for _, group in groupby(ordered, key=lambda c: c.n):
        before: Candidate | None = None
        for candidate in group:
            joint = "\n\n> " if before is None else _joint(before, candidate)
            if candidate.above and (before is None or candidate.above != before.above):
                joint += _above(candidate)
            text = candidate.text.replace("\n", "\n> ")
            yield Token(text=joint + text)
            start = at + len(joint)
            at = start + len(text)
            yield Citation(n=candidate.n, start=start, end=at, quote=plain(candidate.text))
            before = candidate


def _joint(before: Candidate, candidate: Candidate) -> str:
    """What goes between two quoted pieces of a source."""
    if before.kind == candidate.kind == "prose":
        return " " if candidate.order == before.order + 1 else " … "
    if before.kind == candidate.kind and before.above == candidate.above:
        return "\n> "
    return "\n>\n> "


def _above(candidate: Candidate) -> str:
    if candidate.kind == "row":
        columns = candidate.above.strip().strip("|").count("|") + 1
        return f"{candidate.above}\n> |{' --- |' * columns}\n> "
    return f"**{plain(candidate.above)}**\n>\n> "
