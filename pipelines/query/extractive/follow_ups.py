"""Follow-ups without a model: whether a question goes on with the one before it, and what then answers it.

    "How much is the dog tax?"    "And the second?"          ─▶ it leans: both are searched for, and of the pages that
                                                                were shown, what the second asks for is quoted
    "How much is the dog tax?"    "When is the pool open?"   ─▶ it stands alone

Two things tell. Its words: how it begins, what it names of its own (`Signs`, which the rephrase
stage has read; of the questions further back they alone tell). And
the units that both searches found: how much nearer to it than anything on the pages that were shown is what stands
elsewhere. A question that leans is weighed twice, alone and with what it leans on; a unit is worth the mean, so that
the topic chooses the page and the question's own words choose the unit.

Distances are in standard deviations of all units that were found, so that embedders need no figures of their own.
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
LEAST = 0.35  # chance from which it is taken to
LEAST_UNSURE = 0.2  # ... where nothing is sure that is found for it alone
SHOWN = 3.0  # of the score: a unit of a page that was shown fits so much better
READ_ON = 24  # chunks from the beginning of a page that was shown, which a further question is most likely about
NOWHERE = 3.0  # standard deviations, where only one side has units
BACK = 3  # questions, at most, that are asked together with one that leans on them
REFERRING = 3  # things a question may name that says "it", to lean on the one before
NAMED = 2  # things a question may name that begins with "and", to lean on the one before


@dataclass(frozen=True)
class _Marks:
    """What gives a question away as a follow-up, in one language."""

    openers: tuple[str, ...]
    pronouns: frozenset[str]
    generic: frozenset[str]


def earlier(question: str, history: Sequence[Turn]) -> Earlier | None:
    """What a question may lean on; None where nothing was asked before it.

    Args:
        history: without greetings and thanks.
    """
    if not history:
        return None
    before = continued(history[-1].question, history[:-1])
    return Earlier(question=before, pages=history[-1].pages, signs=signs(question))


def signs(question: str) -> Signs:
    """What the words of a question tell, in all languages that it may be in."""
    said = words(question)
    langs = [lang for lang in spoken(question) if lang in _marks()]
    heard = [_marks()[lang] for lang in langs]
    empty = frozenset[str]().union(
        *stopwords().values(), *(marks.generic | marks.pronouns for marks in _marks().values())
    )
    return Signs(
        leans=any(_leans(said, lang) for lang in langs),
        opens=any(_begins(some, marks) for marks in heard for some in (said, said[1:])),
        refers=any(not marks.pronouns.isdisjoint(said) for marks in heard),
        named=sum(word not in empty for word in dict.fromkeys(said)),
    )


def stands_alone(question: str, found: Signs) -> bool:
    """Whether a question names what it is about: it is answered as if it came first.

    It leans at most where it begins as a follow-up or says "it" and names little, or names nothing but what it wants
    ("opening hours?", "what is the fee").

    Args:
        found: its signs.
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
    """The question, after the earlier ones of its conversation that it leans on."""
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
    """By language."""
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
    """What two searches say of a question that leans: units in the order of their worth, and how sure that is."""

    question: str  # with what it leans on
    found: Retrieval
    near: list[Hit]
    findings: Findings
    own: Findings  # in the same order, with the figures of the question's own words

    def sure(self, profile: SurenessProfile | None) -> Sure | None:
        """Of the unit by the question's own words, for it must say what is asked; of the page by both questions."""
        unit, page = sureness(self.own, profile), sureness(self.findings, profile)
        if unit is None or page is None or unit.of == "unit":
            return unit
        return unit.model_copy(update={"of": "nothing" if page.of == "nothing" else "page", "page": page.page})


def joined(earlier: str, question: str) -> str:
    """Both questions as one."""
    both = f"{earlier} {question}"
    return both if len(both) <= MAX_QUESTION else question


def shown(found: Iterable[Retrieval], pages: Sequence[str]) -> list[str]:
    """The pages that were shown before and that the visitor may still read: a search of today has found them."""
    there = {each.page_key for one in found for each in (*one.candidates.dense, *one.candidates.keyword)}
    return [page for page in pages if page in there]


def signals(signs: Signs, vector: Vector32, read: Iterable[Hit], pages: Collection[str]) -> dict[str, float]:
    """What tells whether a question leans on the one before it, for `LEANS`.

    Args:
        vector: of the question alone. read: all chunks that were read. pages: that were shown.
    """
    return {
        "leans": float(signs.leans),
        "opens": float(signs.opens),
        "refers": float(signs.refers),
        "named": float(min(signs.named, 8)),
        "apart": apart(vector, read, pages),
    }


def sure_alone(question: str, alone: Retrieval) -> bool:
    """Whether something is sure that is found for the question by itself; so it is where nobody can tell."""
    if alone.vector is None or alone.model is None:
        return True
    findings = weigh(question, alone.vector, alone.hits, alone.near, *_known(alone))
    sure = sureness(findings, alone.model.profile.sureness)
    return sure is not None and sure.of != "nothing"


def apart(vector: Vector32, read: Iterable[Hit], pages: Collection[str]) -> float:
    """How much nearer the best unit elsewhere is than the best on the pages that were shown, in standard deviations."""
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
    """What answers the question together with the one before it; None where it stands alone. Raises: Retryable."""
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
    """Whether a question names a page that was not shown: "museum?" after one about the library.

    All its words stand in the title of the page that is found for it alone, and not on those that were shown: "opening
    hours?" goes on with whatever has some, though a page be called so.
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
    """The pages that were shown, and what of them no search has read. Raises: Retryable."""
    if not both.hits:
        return [], []
    pages = shown((alone, both), earlier.pages)
    known = {hit.place for hit in (*both.hits, *both.near)}
    places: list[ChunkKey] = [(page, "content", n) for page in pages for n in range(READ_ON)]
    around = await chunks.chunks(both.hits[0].index, [place for place in places if place not in known])
    # One that was refused, or whose answer nobody has told us of, was about what is found for it.
    return pages or [both.hits[0].page_key], around


def _known(found: Retrieval) -> tuple[Sequence[tuple[str, int]], int, bytes]:
    return found.candidates.terms, found.candidates.total, found.common


def follow(
    question: str, earlier: str, alone: Retrieval, both: Retrieval, around: Sequence[Hit], pages: Collection[str]
) -> FollowUpResult | None:
    """What answers a question together with the one before it; None where it was searched by keywords alone.

    Args:
        around: chunks of the pages that were shown.
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
