"""Ranking: scores the units of the hits by their likeness to the question. The order of the pages, the gate and the
quotation use these scores.

    hits and their neighbours ─▶ units ─▶ score: cosine, shared words, the chunk's standing ─▶ best first
                                                                          │└▶ chances of the best unit and its page
                                                                          └▶ (reranker) ─▶ the best units again

Ingest has embedded the units with their page (text.units), so only the question is embedded here. Figures, and how the
weights were chosen: docs/reference/quality.md.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipelines.query.extractive.certainty import opening_words
from pipelines.query.extractive.days import says_closed
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

TOP = 10  # best units from which the signals are computed
REREAD = 24  # best units that a reranker reads
KEPT = 24  # units of the evidence, besides all units of the lists and tables of ...
LEADING = 4  # ... so many best units
CLOSINGS = 8  # and units of the best page that say that something is closed: its opening hours depend on them
APART = 1.0  # penalty for each chunk between a neighbour and its hit, in standard deviations of the fused score
FAR = 2  # chunks from a hit
LEAST = -1e9  # score of a chunk without units
SAME = 3.0  # bonus of a unit on the page where the question's first part was found
AS_WELL = 2.0  # a unit fits as well as the best one if its score is at most so much lower
SCATTERED = 3  # pages with units that fit as well as the best: the question does not say which one it means
ASKED = 64  # words of a question to compare with the units
OPENING = 0.9  # likeness of different words for "open"
TOPIC = 0.5  # weight of a word of the topic, which the question's first part or an earlier question has named

# Weights of the score: fitted with five-fold cross-validation on the tuning part of the everyday questions.
COSINE, SHARED, STANDING, PAGE, LISTED = 80.0, 3.0, 0.45, 0.45, 0.5
# Given back to units of pages that are not translated: in a translation, the same unit has 4 to 5 less of the score.
UNTRANSLATED = 2.0
APART_COSINE = 22.0  # in place of COSINE, where it is known what all vectors of the model have in common: wider spread


class NearUnit(NamedTuple):
    """A unit with its cosine to the question. With these the gate need not embed sentences."""

    text: str  # with its page's title
    lang: str
    cosine: float


@dataclass(frozen=True)
class Weighed:
    """A unit with its scores for the question."""

    hit: Hit
    unit: HitUnit
    cosine: float  # of the centred vectors, if the model's profile has their common direction
    near: float  # of the vectors as they are
    shared: float  # share of the question's words in the unit and its headings, 0..1
    standing: float  # of its chunk, in standard deviations of the search's hits
    page: float  # standing of the page's best hit
    score: float

    @property
    def place(self) -> tuple[str, int, str]:
        return self.hit.page_key, self.unit.start, self.unit.text


@dataclass(frozen=True)
class TermWeights:
    """The question's content words and their weights."""

    terms: Mapping[str, float]
    unknown: frozenset[str] = frozenset()  # words that the index does not have, perhaps misspelled

    @classmethod
    def of(
        cls, question: str, known: Iterable[tuple[str, int]], total: int, langs: Iterable[str], topic: str = ""
    ) -> TermWeights:
        """Weights by inverse document frequency.

        Args:
            known: (stem of the question, number of chunks with it).
            total: chunks in the index.
            langs: the pages' languages.
            topic: further words of the subject, which weigh less.
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
        """The weighted share of the question's words. `likest`: word of the question -> its best likeness in a text."""
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
        """Features of the regressions that estimate the chances of the best unit and its page.

        Args:
            background: typical scores of the embedder, for sites with few units.
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
    def nearest(self) -> list[NearUnit]:
        """The nearest units, for the gate."""
        near = heapq.nlargest(TOP, self.units, key=lambda each: each.near)
        return [NearUnit(f"{each.hit.title} {each.unit.text}", each.hit.lang, each.near) for each in near]

    @property
    def scattered(self) -> bool:
        """Whether many pages have units that fit as well as the best one. Translations count as one page."""
        well = (each for each in self.units if each.score >= self.units[0].score - AS_WELL)
        return len({each.hit.page_id for each in well}) >= SCATTERED

    def preferring(self, page_key: str) -> Findings:
        """The findings with a bonus for the units of a page."""
        raised = (replace(each, score=each.score + SAME * (each.hit.page_key == page_key)) for each in self.units)
        return replace(self, units=_best_first(raised))

    def ordered(self, hits: Sequence[Hit], size: int, needed: Sequence[Hit] = ()) -> list[Hit]:
        """The best `size` chunks, ordered by their page's best unit and then by their own best unit.

        Neighbours of hits may be among them. The n-th chunk gets the score of the n-th hit.

        Args:
            needed: chunks that must be among them.
        """
        page: dict[str, float] = {}
        chunk: dict[ChunkKey, float] = {}
        for each in self.units:
            page.setdefault(each.hit.page_key, each.score)
            chunk.setdefault(each.hit.place, each.score)
        found = {hit.place: hit for hit in (*hits, *(each.hit for each in self.units[:TOP]))}
        # A stable sort keeps the search's order of chunks without units.
        best = sorted(found.values(), key=lambda hit: (-page.get(hit.page_key, LEAST), -chunk.get(hit.place, LEAST)))
        lacking = {hit.place: hit for hit in needed if hit.place not in {each.place for each in best[:size]}}
        best = [*best[:1], *lacking.values(), *(hit for hit in best[1:] if hit.place not in lacking)]
        scores = sorted((hit.score for hit in hits), reverse=True)
        filled = scores + scores[-1:] * (len(best) - len(scores))
        return [replace(hit, score=score) for hit, score in zip(best[:size], filled[:size], strict=True)]

    async def reread(self, question: str, reranker: Reranker) -> Findings:
        """The findings with the best units in a reranker's order.

        The n-th unit gets the score of the former n-th unit, so that thresholds for differences of scores still hold.

        Raises:
            Permanent.
        """
        best, rest = self.units[:REREAD], self.units[REREAD:]
        chances = await reranker.scores(question, [_read(each) for each in best])
        order = sorted(range(len(best)), key=lambda rank: (-chances[rank], rank))
        read = [replace(best[old], score=place.score) for old, place in zip(order, best, strict=True)]
        return replace(self, units=(*read, *rest))

    def cited(self, sources: Sequence[Source]) -> tuple[Evidence, ...]:
        """The best units whose text is in a source, with the source's number."""
        sizes = Counter((each.hit.page_key, each.unit.block) for each in self.units)
        best = {(each.hit.page_key, each.unit.block) for each in self.units[:LEADING]}
        rest = (
            rank
            for rank, each in enumerate(self.units[KEPT:], KEPT)
            if each.hit.page_key == self.units[0].hit.page_key and says_closed(each.unit.text, each.hit.lang)
        )
        closings = frozenset(islice(rest, CLOSINGS))
        evidence = []
        for rank, each in enumerate(self.units):
            unit, block = each.unit, (each.hit.page_key, each.unit.block)
            left_out = rank >= KEPT and block not in best and rank not in closings
            if unit.kind == "heading" or asks(unit.text) or left_out:
                continue
            source = next((s for s in sources if s.url == each.hit.url and unit.text in s.text), None)
            if source is not None:
                evidence.append(
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
        return tuple(evidence)


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
    """Score every unit of the hits and of the chunks near them.

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
    untranslated = {hit.page_key for hit in hits if hit.untranslated}
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
    words_of = cache(lambda text: frozenset(words(text)))  # units share titles, headings, introductions and headers
    there = [
        frozenset[str]().union(*map(words_of, (hit.title, *unit.headings, unit.intro, unit.header, unit.text)))
        for hit, unit in units
    ]
    like = _like(weights, there, {lang.partition("-")[0] for lang in (*spoken(question), *(hit.lang for hit in read))})
    standings = {hit.place: own.get(hit.place, _neighbour_standing(hit, hits)) for hit in read}
    weighed = []
    measured = zip(units, cosines.tolist(), near_cosines.tolist(), there, strict=True)
    for (hit, unit), cosine, as_it_is, context in measured:
        at = standings[hit.place]
        shared = weights.share(_likest(like, context))
        page = pages.get(hit.page_key, at)
        score = by_cosine * cosine + SHARED * shared + STANDING * at + PAGE * page
        score += LISTED * (unit.kind in ("item", "row")) + UNTRANSLATED * (hit.page_key in untranslated)
        weighed.append(Weighed(hit, unit, cosine, as_it_is, shared, at, page, score))
    return Findings(_best_first(weighed), known_share(terms, total), generality)


def _best_first(weighed: Iterable[Weighed]) -> list[Weighed]:
    return sorted(weighed, key=lambda each: (-each.score, each.place))


def _read(each: Weighed) -> str:
    """The unit's text for a reranker, with title, headings, introduction and table header."""
    unit = each.unit
    parts = (each.hit.title, *unit.headings, unit.intro, unit.header, unit.text)
    return "\n".join(part for part in parts if part)


def apart(vectors: Vectors, common: bytes) -> Vectors:
    """Unit vectors without their common direction, again of length 1.

    A model's vectors lie in a narrow cone (Mu and Viswanath, All-but-the-Top, 2018): any two vectors of the bundled
    embedder have a cosine of at least .75. Without the common direction, cosines tell texts apart better.
    """
    shared = expand(common, 1)[0]
    rest = vectors - np.outer(vectors @ shared, shared)
    found: Vectors = rest / np.maximum(np.linalg.norm(rest, axis=1, keepdims=True), 1e-9)
    return found


def _like(
    weights: TermWeights, there: Iterable[frozenset[str]], langs: Iterable[str]
) -> Mapping[str, Mapping[str, float]]:
    """Word of a unit -> word of the question -> likeness.

    Different words for "open" are alike.
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
    """Word of the question -> its best likeness among these words; words without a like one are left out."""
    likest: dict[str, float] = {}
    for other in like.keys() & there:
        for word, how in like[other].items():
            likest[word] = max(how, likest.get(word, 0.0))
    return likest


def _neighbour_standing(chunk: Hit, hits: Sequence[Hit]) -> float:
    """The standing of a neighbour: that of its nearest hit, minus a penalty for the distance."""
    standings = [
        standing(hit.score) - APART * (abs(hit.ord - chunk.ord) if hit.field == "content" else chunk.ord + 1)
        for hit in hits
        if hit.page_key == chunk.page_key
    ]
    return max(standings, default=-FAR)
