"""Confidence: estimates from figures of the search whether the hits contain an answer, and how sure the best unit is.
The answer's model is called later.

    evidence ─▶ signals ─▶ quick score ─ sure ──────────────────────────────────────┬─ yes ─▶ 0 fine, 1 narrow it down
       │                       └ not sure ─▶ a few sentences embedded ─▶ full score ┴─ no ──▶ 2..5: by the figures
       └▶ three figures (distance D, entropy E, subject SQ) ─▶ grade by figures

The grades 0 to 5 and the three figures come from an earlier method, which used the figures alone. With today's
embedders that method recognizes only a third of the questions whose paragraph is missing, so the figures only give the
reason for a refusal. A logistic regression over all signals of the search decides whether there is an answer; each
embedder has its own weights, fitted by `python -m bench gate --fit`. A question in another language shares no words
with the pages, so separate weights use the vectors alone. Languages are recognized by stop words: right for .998 of
XQuAD's questions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from pipelines.query.extractive.ranking import Findings, NearUnit
from pipelines.query.search.fuse import idf, known_share
from pipelines.query.search.ports import Candidate, GateProfile, Hit, SurenessProfile, Thresholds
from pipelines.runtime.embedder import Embedder
from schemas.query import Gate, Grade, Sure, SureOf
from text.language import spoken, stopwords
from text.markdown import plain
from text.sentences import split
from text.words import indexed, stems, words
from text.world import world

NEAREST = 10  # nearest hits by vector, whose distances are averaged
READ = 5  # best hits whose text is read
TOGETHER = 3  # best hits that may answer together
SENTENCES = 4  # sentences to embed if the quick score is not sure; eight find no more
RARE = 0.1  # share of the chunks that may have a rare term
GRAM = 4  # characters of a gram: "won" and "winner" have different stems, but share letters
FINE: Grade = 0
UNCLEAR: Grade = 2  # the lowest grade without an answer
NOT_SAID: Grade = 4
NOTHING: Grade = 5
# Least chance of a page for a card, which asserts nothing: usually; where the gate's score is low, or there is none (a
# question of a word or two); where it is high. No doubted card below it had the answer to a tuned everyday question.
PLACE, PLACE_DOUBTED, PLACE_LIKELY = 0.45, 0.55, 0.4
DOUBTED, LIKELY = 0.03, 0.5  # the gate's scores
# Below these scores of the gate a question may be outside of the site's subjects.
FAR, FARTHEST = 0.5, 0.1
NONE_SHARED, MOST_KNOWN = 0.05, 0.7
ABOUT = 0.25  # least chance of the best page to name pages on the subject
UNKNOWN = 0.5  # known share below which a question without known stop words is in another language


@dataclass(frozen=True)
class GateInput:
    """The results of a search that the gate reads."""

    question: str
    dense: Sequence[Candidate]  # hits by vector, best first
    hits: Sequence[Hit]  # fused, best first
    terms: Sequence[tuple[str, int]]  # the question's stems, each with the number of chunks that have it
    total: int  # chunks in the index
    by_language: bool = False  # whether the terms are stems of their language
    units: Sequence[NearUnit] = ()  # nearest first, where the index holds their vectors

    @cached_property
    def known(self) -> float:
        """The question's known share."""
        return known_share(self.terms, self.total)

    @cached_property
    def weights(self) -> Mapping[str, float]:
        """Stem of the question -> its inverse document frequency."""
        return {term: idf(having, self.total) for term, having in self.terms}

    def share(self, text: str, lang: str, *, rare: bool = False) -> float:
        """The weighted share of the question's stems (of its rare stems) in a text of a language, 0..1."""
        weights, there = self._rare if rare else self.weights, self._terms_of(text, lang)
        return sum(weight for term, weight in weights.items() if term in there) / (sum(weights.values()) or 1.0)

    @cached_property
    def _rare(self) -> Mapping[str, float]:
        least = idf(round(RARE * self.total), self.total)
        return {term: weight for term, weight in self.weights.items() if weight >= least}

    @cached_property
    def _terms_of(self) -> Callable[[str, str], frozenset[str]]:
        """The terms of a text of a language. Cached, since the signals compare the same texts several times."""
        return cache(lambda text, lang: frozenset(indexed(text, lang) if self.by_language else stems(text)))


async def judge(
    found: GateInput,
    profile: GateProfile,
    model: Embedder,
    threshold: float | None = None,
) -> tuple[Grade, Gate]:
    """The grade, and the figures that led to it.

    Args:
        threshold: least score of an answerable question, instead of the profile's.

    Raises:
        Retryable, Permanent: of the embedder.
    """
    at = profile.thresholds or Thresholds()
    trace = figures(found, at)
    scores = profile.foreign if foreign(found) else profile.native
    if not found.hits:
        return 5, trace
    if scores is None:
        return (trace.by_figures if profile.thresholds else 0), trace
    known = signals(found)
    score, least = scores.quick.score(known), scores.yes
    if scores.no <= score < scores.yes:
        known |= await closer(found, model)
        score = scores.full.score(known)
        least = scores.threshold if threshold is None else threshold
    trace = trace.model_copy(update={"score": score, "threshold": least, "signals": known})
    return decided(score >= least, trace, at), trace


def decided(answerable: bool, trace: Gate, at: Thresholds) -> Grade:
    """The grade: the score decides whether there is an answer, the figures give the reason if not."""
    if answerable:
        return 1 if trace.entropy > at.spread else 0
    return trace.by_figures if trace.by_figures >= 2 else 4  # the figures look fine, but no page has the answer


def foreign(found: GateInput) -> bool:
    """Whether the question is in another language than the pages that were found."""
    return in_another_language(found.question, found.hits[0].lang if found.hits else "", found.known)


def in_another_language(question: str, lang: str, known: float) -> bool:
    """Whether a question is in another language than a page.

    Args:
        lang: of the page.
        known: share of the question that the index knows.
    """
    heard, read = spoken(question), lang.partition("-")[0]
    return read not in heard if heard and read in stopwords() else known < UNKNOWN


def figures(found: GateInput, at: Thresholds) -> Gate:
    """The three figures, and the grade by them alone."""
    cosines = [hit.cosine for hit in found.dense[:NEAREST] if hit.cosine is not None]
    distance = 1 - sum(cosines) / len(cosines) if cosines else 1.0
    langs = spoken(found.question)
    spread, said = entropy(found.hits), subject(found.question, {w for lang in langs for w in stopwords()[lang]})
    by_figures = grade_by_figures(distance, spread, said, hits=len(found.hits), at=at)
    return Gate(distance=distance, entropy=spread, subject=said, by_figures=by_figures)


def grade_by_figures(distance: float, entropy: float, subject: float, *, hits: int, at: Thresholds) -> Grade:
    """The grade by distance, entropy and subject alone: the earlier method."""
    if not hits or distance > at.far:
        return 5 if not hits or entropy > at.scattered or subject < at.subject else 4
    if distance > at.near:
        if subject < at.subject:
            return 2
        return 3 if entropy > at.spread else 1
    if entropy > at.scattered:
        return 2 if subject < at.subject else 3
    return 1 if entropy > at.spread else 0


def entropy(hits: Sequence[Hit]) -> float:
    """The entropy of the hits over pages (Shannon, 1948), divided by its maximum for so many hits; 0 for one page."""
    counts = Counter(hit.page_key for hit in hits).values()
    if len(counts) < 2:
        return 0.0
    shares = [count / len(hits) for count in counts]
    return min(1.0, -sum(share * math.log(share) for share in shares) / math.log(len(hits)))


def subject(question: str, empty: Collection[str]) -> float:
    """The share of words that are no stop words."""
    said = words(question)
    return sum(word not in empty for word in said) / len(said) if said else 0.0


def signals(found: GateInput) -> dict[str, float]:
    """The signals of the quick score, each 0..1."""
    cosines = [hit.cosine for hit in found.dense if hit.cosine is not None and hit.field == "content"][:NEAREST]
    asked = _grams(found.question)
    leaders = found.hits[:READ]
    lang = found.hits[0].lang if found.hits else ""
    return {
        "top": max(cosines, default=0.0),  # cosine
        "mean": sum(cosines) / len(cosines) if cosines else 0.0,
        "known": found.known,
        "together": found.share(" ".join(f"{hit.title} {hit.text}" for hit in found.hits[:TOGETHER]), lang),
        "hit": max((found.share(hit.text, hit.lang) for hit in leaders), default=0.0),
        "rare": max((found.share(hit.text, hit.lang, rare=True) for hit in leaders), default=0.0),
        "letters": max((len(asked & _grams(hit.text)) / (len(asked) or 1) for hit in leaders), default=0.0),
    }


async def closer(found: GateInput, model: Embedder) -> dict[str, float]:
    """The further signals of the full score, from the nearest sentences: best cosine, best cosine with shared words."""
    if found.units:
        near = found.units[:SENTENCES]
        both = [unit.cosine + found.share(unit.text, unit.lang) / 10 for unit in near]
        return {"sentence": max(unit.cosine for unit in near), "both": max(both)}
    candidates = sentences(found)
    if not candidates:
        return {"sentence": 0.0, "both": 0.0}
    cosines = await model.passages([text for text, _ in candidates]) @ await model.query(found.question)
    both = [float(cosine) + share / 10 for cosine, (_, share) in zip(cosines, candidates, strict=True)]
    return {"sentence": float(max(cosines)), "both": max(both)}


def sentences(found: GateInput) -> list[tuple[str, float]]:
    """(sentence, share of the question in it and its title) of the best hits' sentences that share most words."""
    pool: dict[str, tuple[float, float]] = {}
    for rank, hit in enumerate(found.hits[:READ]):
        for sentence in split(hit.text, hit.lang) if hit.field == "content" else ():
            text = plain(hit.text[sentence.start : sentence.end])
            if any(ch.isalnum() for ch in text):
                pool.setdefault(
                    text, (found.share(text, hit.lang) - 0.05 * rank, found.share(f"{hit.title} {text}", hit.lang))
                )
    best = sorted(pool.items(), key=lambda each: -each[1][0])[:SENTENCES]
    return [(text, share) for text, (_, share) in best]


def _grams(text: str) -> set[str]:
    joined = " ".join(words(text))
    return {joined[i : i + GRAM] for i in range(len(joined) - GRAM + 1)}


def outside(found: GateInput, gate: Gate | None, shared: float) -> bool:
    """Whether a question's subject is on no page of this site, although some unit is near it.

    Either it names a country or a large city that no page has, or the index knows its words and the best unit has none
    of them.

    Args:
        shared: share of the question's words in the best unit and its headings.
    """
    if gate is None or gate.score is None or gate.score >= FAR:
        return False
    if gate.score < FARTHEST and shared < NONE_SHARED and found.known >= MOST_KNOWN:
        return True
    known, read = {term for term, chunks in found.terms if chunks}, {hit.lang for hit in found.hits}
    named = frozenset[str]().union(*(world(lang) for lang in ("en", *spoken(found.question)))) & set(
        words(found.question)
    )
    return any(known.isdisjoint(stem for lang in read for stem in indexed(name, lang)) for name in named)


def sureness(found: Findings, profile: SurenessProfile | None, *, foreign: bool = False) -> Sure | None:
    """How sure the best unit and its page are; None where there are no units.

    Args:
        profile: None: not measured for this embedder, so the gate alone decides.
        foreign: whether the question is in another language than the pages.
    """
    signals = found.signals(profile.background if profile else None)
    if not signals:
        return None
    if profile is None:
        return Sure(of="unit", signals=signals)
    by_page = profile.foreign if foreign and profile.foreign else profile.page
    unit, page = profile.unit.score(signals), by_page.score(signals)
    of: SureOf = "nothing"
    if found.scattered:
        of = "nothing"
    elif unit >= profile.least_unit:
        of = "unit"
    elif page >= profile.least_page:
        of = "page"
    return Sure(of=of, unit=unit, page=page, signals=signals)


def least_for_card(gate: Gate | None) -> float:
    """The least chance of a page for a card, by the gate's score."""
    if gate is None:
        return PLACE_DOUBTED
    if gate.score is None:
        return PLACE
    return PLACE_DOUBTED if gate.score < DOUBTED else PLACE_LIKELY if gate.score >= LIKELY else PLACE


def graded(grade: Grade, sure: Sure, writes: bool, least: float = PLACE) -> Grade:
    """The gate's grade, corrected by the chances of unit and page.

    Args:
        writes: whether a model writes the answer. It may combine sources, so low chances do not worsen the grade.
        least: least chance of a page for a card, without a model.
    """
    if sure.page is None:
        return grade
    if sure.of != "nothing" if writes else sure.page >= least:
        return grade if grade < UNCLEAR else FINE
    if writes:
        return grade
    if sure.page < ABOUT:
        return NOTHING
    return grade if grade >= UNCLEAR else NOT_SAID
