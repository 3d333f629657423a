"""Follow-ups without a model: decides whether a question leans on the one before it, and ranks the units for both.

    "How much is the dog tax?"    "And the second?"          ─▶ it leans: both questions are searched, and the units of
                                                                the pages shown before get a bonus
    "How much is the dog tax?"    "When is the pool open?"   ─▶ it stands alone

The decision uses the question's words (`Signs`, from the rephrase stage: how it begins, how much it names) and the
units of both searches: how much nearer to the question the best unit elsewhere is than the best on the pages shown
before. For questions further back only the words count. A unit's score for a leaning question is the mean of its scores
for the question alone and with the one before it: the topic selects the page, the question's own words select the unit.

Distances are in standard deviations over all found units, so that the figures hold for every embedder.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from pipelines.query.extractive.certainty import asked
from pipelines.query.extractive.confidence import sureness
from pipelines.query.extractive.ranking import Findings, weigh
from pipelines.query.search.ports import Calibration, ChunkKey, Hit, SearchIndex, SurenessProfile
from pipelines.query.search.search import Retrieval
from prompts.loader import sentences
from schemas.ingest import Vector32
from schemas.query import MAX_QUESTION, Earlier, Signs, Sure, Turn
from text.language import spoken, stopwords
from text.words import stems, words

# Chance that a question leans: fitted by `python -m bench follow-ups`; figures in docs/reference/quality.md.
LEANS = Calibration(
    bias=1.402, weights={"leans": 2.125, "opens": 1.129, "refers": 0.565, "named": -0.736, "apart": -0.794}
)
LEAST = 0.35  # least chance for a question to lean ...
LEAST_UNSURE = 0.2  # ... and the least one if the question alone has no sure answer
SHOWN = 3.0  # bonus of a unit on a page shown before
READ_ON = 24  # chunks to read from the beginning of a page shown before
NOWHERE = 3.0  # standard deviations, if only one side has units
BACK = 3  # earlier questions to put before a leaning one
REFERRING = 3  # content words of a leaning question that has a pronoun, at most
NAMED = 2  # content words of a leaning question that begins with "and", at most


@dataclass(frozen=True)
class _Marks:
    """Words of one language by which a follow-up is recognized."""

    openers: tuple[str, ...]
    pronouns: frozenset[str]
    generic: frozenset[str]


def earlier(question: str, history: Sequence[Turn]) -> Earlier | None:
    """The question, pages and signs for a possible follow-up; None for the first question.

    Args:
        history: turns without courtesies.
    """
    if not history:
        return None
    before = continued(history[-1].question, history[:-1])
    return Earlier(question=before, pages=history[-1].pages, signs=signs(question))


def signs(question: str) -> Signs:
    """The signs of a follow-up in a question's words, in all languages that it may be in."""
    said = words(question)
    langs = [lang for lang in spoken(question) if lang in _marks()]
    found = [_marks()[lang] for lang in langs]
    empty = frozenset[str]().union(
        *stopwords().values(), *(marks.generic | marks.pronouns for marks in _marks().values())
    )
    return Signs(
        leans=any(_leans(said, lang) for lang in langs),
        opens=any(_begins(some, marks) for marks in found for some in (said, said[1:])),
        refers=any(not marks.pronouns.isdisjoint(said) for marks in found),
        named=sum(word not in empty for word in dict.fromkeys(said)),
    )


def stands_alone(question: str, found: Signs) -> bool:
    """Whether a question names its subject, so that it needs no earlier question.

    A question may lean if it names little and begins like a follow-up or has a pronoun, or if it names nothing but the
    kind of figure that it wants ("opening hours?", "what is the fee").

    Args:
        found: the question's signs.
    """
    if (
        found.leans
        or not found.named
        or (found.opens and found.named <= NAMED)
        or (found.refers and found.named <= REFERRING)
    ):
        return False
    wants, subject = asked(question, sorted(spoken(question)))
    return bool(subject) or not wants


def continued(question: str, history: Sequence[Turn]) -> str:
    """The question behind the earlier questions that it leans on, as one text."""
    asked = [question]
    for turn in reversed(history[-BACK:]):
        if not leans(asked[0]):
            break
        asked.insert(0, turn.question)
    together = " ".join(asked)
    return together if len(together) <= MAX_QUESTION else question


def leans(question: str) -> bool:
    """Whether a question can hardly be understood without the one before it."""
    said = words(question)
    return any(_leans(said, lang) for lang in spoken(question) if lang in _marks())


def _leans(said: Sequence[str], lang: str) -> bool:
    marks = _marks()[lang]
    empty = stopwords()[lang] | marks.generic
    named = sum(word not in empty for word in said)
    if not named:
        return True
    return (_begins(said, marks) and named <= NAMED) or (named == 1 and not marks.pronouns.isdisjoint(said))


def _begins(said: Sequence[str], marks: _Marks) -> bool:
    return f"{' '.join(said)} ".startswith(marks.openers)


@cache
def _marks() -> Mapping[str, _Marks]:
    """Language -> its words."""
    found = sentences("follow-ups")
    return {
        lang: _Marks(
            openers=tuple(f"{' '.join(words(opener))} " for opener in openers.split(",")),
            pronouns=frozenset(words(found["pronouns"][lang])),
            generic=frozenset(words(found["generic"][lang])),
        )
        for lang, openers in found["openers"].items()
    }


@dataclass(frozen=True)
class FollowUpResult:
    """The result for a leaning question, from two searches: its units, ranked for both questions."""

    question: str  # behind the one that it leans on
    found: Retrieval
    near: list[Hit]
    findings: Findings
    own: Findings  # the same units in the same order, with the figures for the question alone

    def sure(self, profile: SurenessProfile | None) -> Sure | None:
        """The chance of the unit for the question alone, which it must answer; that of the page for both questions."""
        unit, page = sureness(self.own, profile), sureness(self.findings, profile)
        if unit is None or page is None or unit.of == "unit":
            return unit
        return unit.model_copy(update={"of": "nothing" if page.of == "nothing" else "page", "page": page.page})


def joined(earlier: str, question: str) -> str:
    """Both questions as one text."""
    both = f"{earlier} {question}"
    return both if len(both) <= MAX_QUESTION else question


def shown(found: Iterable[Retrieval], pages: Sequence[str]) -> list[str]:
    """The pages shown before that the visitor may still read, since this search has found them."""
    there = {each.page_key for one in found for each in (*one.candidates.dense, *one.candidates.keyword)}
    return [page for page in pages if page in there]


def signals(signs: Signs, vector: Vector32, read: Iterable[Hit], pages: Collection[str]) -> dict[str, float]:
    """The features of `LEANS`.

    Args:
        vector: vector of the question alone.
        read: all chunks that were read.
        pages: the pages shown before.
    """
    return {
        "leans": float(signs.leans),
        "opens": float(signs.opens),
        "refers": float(signs.refers),
        "named": float(min(signs.named, 8)),
        "apart": apart(vector, read, pages),
    }


def sure_alone(question: str, alone: Retrieval) -> bool:
    """Whether the question alone has a sure unit or page; also True if this cannot be computed."""
    if alone.vector is None or alone.model is None:
        return True
    findings = weigh(question, alone.vector, alone.hits, alone.near, *_known(alone))
    sure = sureness(findings, alone.model.profile.sureness)
    return sure is not None and sure.of != "nothing"


def apart(vector: Vector32, read: Iterable[Hit], pages: Collection[str]) -> float:
    """How much nearer the best unit elsewhere is than the best on the pages shown before, in standard deviations."""
    units = [
        (hit.page_key in pages, unit.vector) for hit in {hit.place: hit for hit in read}.values() for unit in hit.units
    ]
    on = np.array([there for there, _ in units], dtype=bool)
    if not on.any():
        return NOWHERE
    if on.all():
        return -NOWHERE
    cosines = np.stack([vector for _, vector in units]) @ vector
    return float((cosines[~on].max() - cosines[on].max()) / (cosines.std() + 1e-6))


async def go_on(
    question: str, earlier: Earlier, alone: Retrieval, both: Retrieval, chunks: SearchIndex
) -> FollowUpResult | None:
    """The result for the question with the one before it; None if it stands alone. Raises: Retryable."""
    if alone.vector is None or not both.hits:
        return None
    pages, around = await read_on(earlier, alone, both, chunks)
    read = (*alone.near, *alone.hits, *both.near, *both.hits, *around)
    if names_another(question, alone.hits, read, pages):
        return None
    chance = LEANS.score(signals(earlier.signs, alone.vector, read, pages))
    if chance < LEAST and (chance < LEAST_UNSURE or sure_alone(question, alone)):
        return None
    revisions = {hit.page_key: hit.revision for hit in (*reversed(around), *both.hits)}
    around = [chunk for chunk in around if chunk.revision == revisions[chunk.page_key]]
    return follow(question, earlier.question, alone, both, around, pages)


def names_another(question: str, hits: Sequence[Hit], read: Iterable[Hit], pages: Collection[str]) -> bool:
    """Whether a question names a page that was not shown before: "museum?" after one about the library.

    All its words must be in the title of the first hit, and not all on the pages shown before: after the library,
    "opening hours?" means the library's, even if a page is called "Opening hours".
    """
    empty = frozenset[str]().union(*stopwords().values())
    named = set(stems(" ".join(word for word in words(question) if word not in empty)))
    if not named or not hits or hits[0].page_key in pages or not named <= set(stems(hits[0].title)):
        return False
    shown = {stem for hit in read if hit.page_key in pages for stem in stems(f"{hit.title} {hit.text}")}
    return not named <= shown


async def read_on(
    earlier: Earlier, alone: Retrieval, both: Retrieval, chunks: SearchIndex
) -> tuple[list[str], list[Hit]]:
    """(pages shown before, their chunks that no search has read). Raises: Retryable."""
    if not both.hits:
        return [], []
    pages = shown((alone, both), earlier.pages)
    known = {hit.place for hit in (*both.hits, *both.near)}
    places: list[ChunkKey] = [(page, "content", n) for page in pages for n in range(READ_ON)]
    around = await chunks.chunks(both.hits[0].index, [place for place in places if place not in known])
    # If the question before has no pages (a refusal, or a lost answer), its first hit stands for them.
    return pages or [both.hits[0].page_key], around


def _known(found: Retrieval) -> tuple[Sequence[tuple[str, int]], int, bytes]:
    return found.candidates.terms, found.candidates.total, found.common


def follow(
    question: str, earlier: str, alone: Retrieval, both: Retrieval, around: Sequence[Hit], pages: Collection[str]
) -> FollowUpResult | None:
    """The result for a question with the one before it; None for a search by keywords alone.

    Args:
        around: chunks of the pages shown before.
    """
    if alone.vector is None or both.vector is None:
        return None
    whole, near = joined(earlier, question), [*both.near, *around]
    own = weigh(question, alone.vector, both.hits, near, *_known(alone))
    with_topic = weigh(whole, both.vector, both.hits, near, *_known(both))
    alone_worth = {each.place: each.score for each in own.units}
    scores = {each.place: (each.score + alone_worth[each.place]) / 2 for each in with_topic.units}

    def ordered(findings: Findings) -> Findings:
        worth = [
            replace(each, score=scores[each.place] + SHOWN * (each.hit.page_key in pages)) for each in findings.units
        ]
        return replace(findings, units=sorted(worth, key=lambda each: (-each.score, each.place)))

    return FollowUpResult(whole, both, near, ordered(with_topic), ordered(own))
