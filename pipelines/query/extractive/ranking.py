"""Ranking: the units of what was found, measured against the question once. The order of the pages, the gate and the
quotation all read this.

    hits and their neighbours ─▶ units ─▶ cosine of the sense, words shared, standing of the chunk ─▶ best first
                                                                          │└▶ how sure of the unit, of the page
                                                                          └▶ (reranker) ─▶ the best read again

A unit's vector was made with its page (text.units), so nothing but the question is embedded here. Figures, and how the
weights were chosen: docs/reference/quality.md.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipelines.query.extractive.certainty import opening_words
from pipelines.query.search.fuse import idf, known_share, standing
from pipelines.query.search.ports import Background, ChunkKey, Hit, HitUnit, Reranker
from schemas.compact import expand
from schemas.ingest import Vector32
from schemas.query import Evidence, Source
from text.language import spoken, stopwords
from text.likeness import Likeness
from text.units import asks
from text.words import indexed, words

Vectors = NDArray[np.float32]  # a row a text

TOP = 10  # of the best units that tell how sure the best one is
REREAD = 24  # of the best units, where a reranker reads them again
KEPT = 24  # units handed on, and all of the lists and tables that
LEADING = 4  # of the best are part of
APART = 1.0  # standard deviations of the fused score that a chunk's distance from its hit costs
FAR = 2  # chunks from a hit
LEAST = -1e9  # of a chunk without units
SAME = 3.0  # of the score: what a part of a question gains on the page that the part before it was found on
AS_WELL = 2.0  # of the score: a unit that is less far behind the best fits as well
SCATTERED = 3  # pages with units that fit as well as the best: nobody can tell which of them is meant
ASKED = 64  # words of a question that are looked for in the units; whoever asks says what it is about in fewer
OPENING = 0.9  # how like each other words are that say when something is open
TOPIC = 0.5  # what a word counts that was said of the topic alone, before the part of a question that is measured

# Of the sum by which units are ordered: fitted on the tuned part of the everyday questions, five times over.
COSINE, SHARED, STANDING, PAGE, LISTED = 80.0, 3.0, 0.45, 0.45, 0.5
APART_COSINE = 22.0  # in place of COSINE, where it is known what all vectors of the model have in common: wider spread


class Spoken(NamedTuple):
    """A unit near the question: no sentence needs to be embedded where these are known."""

    text: str  # with its page's title
    lang: str
    cosine: float


@dataclass(frozen=True)
class Weighed:
    """A unit and how well it fits the question."""

    hit: Hit
    unit: HitUnit
    cosine: float  # without what all vectors of the model have in common, where that is known
    near: float  # the cosine as it is
    shared: float  # of the question's words, in the unit's sense, 0..1
    standing: float  # of its chunk, in standard deviations of the search's hits
    page: float  # the same, of the page's best hit
    score: float

    @property
    def place(self) -> tuple[str, int, str]:
        return self.hit.page_key, self.unit.start, self.unit.text


@dataclass(frozen=True)
class TermWeights:
    """The question's words that say something, and how much each says."""

    terms: Mapping[str, float]
    unknown: frozenset[str] = frozenset()  # to the index: perhaps misspelled

    @classmethod
    def of(
        cls, question: str, known: Iterable[tuple[str, int]], total: int, langs: Iterable[str], topic: str = ""
    ) -> TermWeights:
        """
        Args:
            known: the question's stems and in how many of `total` chunks each is. langs: of the pages.
            topic: what the question is about besides, in other words: they weigh less.
        """
        terms, read = dict(known), list(dict.fromkeys(langs))
        empty = frozenset[str]().union(*stopwords().values())
        said = dict.fromkeys(words(question))
        telling = [word for word in said if word not in empty] or ([] if topic else list(said))
        besides = [word for word in dict.fromkeys(words(topic)) if word not in empty and word not in said]
        having = {
            word: max((terms.get(stem, 0) for lang in read for stem in indexed(word, lang)), default=0)
            for word in (*telling, *besides)[:ASKED]
        }
        unknown = frozenset(word for word, chunks in having.items() if not chunks)
        much = dict.fromkeys(besides, TOPIC)
        return cls({word: much.get(word, 1.0) * idf(chunks, total) for word, chunks in having.items()}, unknown)

    def share(self, likest: Mapping[str, float]) -> float:
        """How much of the question is there. `likest`: of each of its words, how like the likest word there is."""
        total = sum(self.terms.values()) or 1.0
        return sum(weight * likest.get(word, 0.0) for word, weight in self.terms.items()) / total


@dataclass(frozen=True)
class Findings:
    """All units, best first."""

    units: Sequence[Weighed]
    known: float = 0.0  # share of the question that the index knows; little of one in another language
    # Of the question's vector with what all vectors of its model have in common: little of one about something special.
    common: float = 0.0

    def signals(self, background: Background | None = None) -> dict[str, float]:
        """What tells how sure the best unit and its page are.

        Args:
            background: of the embedder: what is compared with where the site has little.
        """
        if not self.units:
            return {}
        best = self.units[0]
        scores = np.array([each.score for each in self.units])
        cosines = np.array([each.cosine for each in self.units])
        other = next((each.score for each in self.units if each.hit.page_key != best.hit.page_key), None)
        mean, spread, cosine = float(scores.mean()), float(scores.std()), float(cosines.mean())
        if background is not None:
            share = min(len(scores) / background.units, 1.0)
            both = share * mean + (1 - share) * background.score
            squares = share * (spread**2 + mean**2) + (1 - share) * (background.spread**2 + background.score**2)
            mean, spread = both, math.sqrt(max(squares - both**2, 0.0))
            cosine = share * cosine + (1 - share) * background.cosine
            if other is None or share < 1:
                other = background.rival if other is None else max(other, background.rival)
        return {
            "cosine": best.cosine,
            "shared": best.shared,
            "standing": best.standing,
            "page": best.page,
            "margin": min(best.score - (float(scores[-1]) if other is None else other), 5.0),
            "ahead": (best.score - mean) / (spread + 1e-6),
            "pages": sum(each.hit.page_key == best.hit.page_key for each in self.units[:TOP]) / TOP,
            "mean": cosine,
            "known": self.known,
            "common": self.common,
        }

    @cached_property
    def nearest(self) -> list[Spoken]:
        """For the gate."""
        near = heapq.nlargest(TOP, self.units, key=lambda each: each.near)
        return [Spoken(f"{each.hit.title} {each.unit.text}", each.hit.lang, each.near) for each in near]

    @property
    def scattered(self) -> bool:
        """Whether what fits best stands on many pages at once; translations are one page."""
        well = (each for each in self.units if each.score >= self.units[0].score - AS_WELL)
        return len({each.hit.page_id for each in well}) >= SCATTERED

    def preferring(self, page_key: str) -> Findings:
        """The same, with what is on a page before what fits as well elsewhere."""
        raised = (replace(each, score=each.score + SAME * (each.hit.page_key == page_key)) for each in self.units)
        return replace(self, units=_best_first(raised))

    def ordered(self, hits: Sequence[Hit], size: int, needed: Sequence[Hit] = ()) -> list[Hit]:
        """The best `size` chunks: those first whose page has the best unit, of a page those with its best units.

        A chunk that was only read as a neighbour may be among them. The scores stay those of the hits, in their order.

        Args:
            needed: what must be among them.
        """
        page: dict[str, float] = {}
        chunk: dict[ChunkKey, float] = {}
        for each in self.units:
            page.setdefault(each.hit.page_key, each.score)
            chunk.setdefault(each.hit.place, each.score)
        found = {hit.place: hit for hit in (*hits, *(each.hit for each in self.units[:TOP]))}
        # Stable: without units they stay as they were.
        best = sorted(found.values(), key=lambda hit: (-page.get(hit.page_key, LEAST), -chunk.get(hit.place, LEAST)))
        lacking = {hit.place: hit for hit in needed if hit.place not in {each.place for each in best[:size]}}
        best = [*best[:1], *lacking.values(), *(hit for hit in best[1:] if hit.place not in lacking)]
        scores = sorted((hit.score for hit in hits), reverse=True)
        filled = scores + scores[-1:] * (len(best) - len(scores))
        return [replace(hit, score=score) for hit, score in zip(best, filled, strict=True)][:size]

    async def reread(self, question: str, reranker: Reranker) -> Findings:
        """The same with the best units in a reranker's order; each takes the score of the one whose place it takes.

        So whoever compares scores finds them as far apart as they were fitted to be.

        Raises:
            Permanent.
        """
        best, rest = self.units[:REREAD], self.units[REREAD:]
        chances = await reranker.scores(question, [_read(each) for each in best])
        order = sorted(range(len(best)), key=lambda rank: (-chances[rank], rank))
        read = [replace(best[old], score=place.score) for old, place in zip(order, best, strict=True)]
        return replace(self, units=(*read, *rest))

    def cited(self, sources: Sequence[Source]) -> tuple[Evidence, ...]:
        """The best units that stand in one of the sources, each with its number."""
        sizes = Counter((each.hit.page_key, each.unit.block) for each in self.units)
        best = {(each.hit.page_key, each.unit.block) for each in self.units[:LEADING]}
        told = []
        for rank, each in enumerate(self.units):
            unit, block = each.unit, (each.hit.page_key, each.unit.block)
            if unit.kind == "heading" or asks(unit.text) or (rank >= KEPT and block not in best):
                continue
            source = next((s for s in sources if s.url == each.hit.url and unit.text in s.text), None)
            if source is not None:
                told.append(
                    Evidence(
                        n=source.n,
                        start=unit.start,
                        text=unit.text,
                        kind=unit.kind,
                        headings=unit.headings,
                        intro=unit.intro,
                        header=unit.header,
                        block=unit.block,
                        of=sizes[block],
                        score=each.score,
                    )
                )
        return tuple(told)


def weigh(
    question: str,
    vector: Vector32,
    hits: Sequence[Hit],
    near: Sequence[Hit],
    terms: Sequence[tuple[str, int]],
    total: int,
    common: bytes = b"",
    *,
    topic: str = "",
) -> Findings:
    """Measure every unit of the hits and of what is near them.

    Args:
        vector: of the question.
        hits: fused, best first. near: chunks around them. terms, total: as the search knows the question's words.
        common: of the embedder's profile.
        topic: of a part of a question, what was asked before it.
    """
    pages: dict[str, float] = {}
    for hit in hits:
        pages.setdefault(hit.page_key, standing(hit.score))
    own = {hit.place: standing(hit.score) for hit in hits if hit.field == "content"}
    read = [hit for hit in {hit.place: hit for hit in (*near, *hits)}.values() if hit.units]
    units = [(hit, unit) for hit in read for unit in hit.units]
    if not units:
        return Findings(())
    vectors = np.stack([unit.vector for _, unit in units])
    cosines = near_cosines = vectors @ vector
    generality = 0.0
    if common:
        cosines = apart(vectors, common) @ apart(vector[None], common)[0]
        generality = float(expand(common, 1)[0] @ vector)
    by_cosine = APART_COSINE if common else COSINE
    weights = TermWeights.of(question, terms, total, (hit.lang for hit in read), topic)
    there = [frozenset(words(" ".join((hit.title, *unit.headings, unit.intro, _said(unit))))) for hit, unit in units]
    like = _like(weights, there, {lang.partition("-")[0] for lang in (*spoken(question), *(hit.lang for hit in read))})
    weighed = []
    measured = zip(units, cosines.tolist(), near_cosines.tolist(), there, strict=True)
    for (hit, unit), cosine, as_it_is, context in measured:
        at = own.get(hit.place, _beside(hit, hits))
        shared = weights.share(_likest(like, context))
        page = pages.get(hit.page_key, at)
        score = by_cosine * cosine + SHARED * shared + STANDING * at + PAGE * page
        score += LISTED * (unit.kind in ("item", "row"))
        weighed.append(Weighed(hit, unit, cosine, as_it_is, shared, at, page, score))
    return Findings(_best_first(weighed), known_share(terms, total), generality)


def _best_first(weighed: Iterable[Weighed]) -> list[Weighed]:
    return sorted(weighed, key=lambda each: (-each.score, each.place))


def _read(each: Weighed) -> str:
    """What a reranker reads of a unit: with the headings above it, what introduces it, a table's header."""
    unit = each.unit
    parts = (each.hit.title, *unit.headings, unit.intro, unit.header, unit.text)
    return "\n".join(part for part in parts if part)


def apart(vectors: Vectors, common: bytes) -> Vectors:
    """Rows of length 1 without the direction that they all have in common, of length 1 again.

    A model's vectors lie in a narrow cone (Mu and Viswanath, All-but-the-Top, 2018): two of the bundled embedder have
    a cosine of .75 and more whatever they say, and what is left tells texts apart better.
    """
    shared = expand(common, 1)[0]
    rest = vectors - np.outer(vectors @ shared, shared)
    found: Vectors = rest / np.maximum(np.linalg.norm(rest, axis=1, keepdims=True), 1e-9)
    return found


def _said(unit: HitUnit) -> str:
    return f"{unit.header} {unit.text}"


def _like(
    weights: TermWeights, there: Iterable[frozenset[str]], langs: Iterable[str]
) -> Mapping[str, Mapping[str, float]]:
    """Of each word of the units that is like some of the question's, how like each of those.

    "Open" and "opening hours" are one thing.
    """
    opening = frozenset[str]().union(*map(opening_words, langs))
    others = Likeness(frozenset[str]().union(*there))
    found: dict[str, dict[str, float]] = {}
    for word in weights.terms:
        alike = others.of(word, misspelled=word in weights.unknown)
        if word in opening:
            alike |= {other: max(OPENING, alike.get(other, 0.0)) for other in opening}
        for other, like in alike.items():
            found.setdefault(other, {})[word] = like
    return found


def _likest(like: Mapping[str, Mapping[str, float]], there: frozenset[str]) -> dict[str, float]:
    """Of each of the question's words, how like it the likest word there is; nothing of those that none is like."""
    likest: dict[str, float] = {}
    for other in like.keys() & there:
        for word, how in like[other].items():
            likest[word] = max(how, likest.get(word, 0.0))
    return likest


def _beside(chunk: Hit, hits: Sequence[Hit]) -> float:
    """A neighbour stands as its nearest hit does, less for each chunk between them."""
    beside = [
        standing(hit.score) - APART * (abs(hit.ord - chunk.ord) if hit.field == "content" else chunk.ord + 1)
        for hit in hits
        if hit.page_key == chunk.page_key
    ]
    return max(beside, default=-FAR)
