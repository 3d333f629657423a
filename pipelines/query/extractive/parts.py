"""Parts: splits a question that asks two things, so that a missing answer to one of them can be named.

    "What does a parking permit cost, and where do I get it?"  ─▶  what it costs │ where I get it
    "Was gehört in die Tonne und was nicht?"                   ─▶  one question: the second half only negates the first

The rules use words alone (prompts/parts.yaml). A wrong split would answer neither half, so a question stays whole
unless it surely has two parts; so does one with three parts or more.

Units are ranked for each part, among the hits of the whole question. The second part is seldom complete by itself ("and
where do I get it?"): the first part is its topic, and a share of the whole question's vector is added to its own.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from pipelines.query.extractive.confidence import sureness
from pipelines.query.extractive.ranking import Findings, weigh
from pipelines.query.search.ports import Hit
from pipelines.query.search.search import Retrieval
from prompts.loader import sentences, table
from schemas.query import Part, Source, Sure
from text.language import spoken, stopwords
from text.sentences import split as split_sentences
from text.words import words

PARTS = 2
WHOLE = 0.5  # share of the whole question's vector in the second part's
LEAST = 2  # words of a part
LONGEST = 1_000  # characters of a question to split; a longer one asks more than two things
AHEAD = 2  # words that may precede a part's question word: "bis zu welchem Tag"
SIGNS = frozenset("+&;")  # signs that join parts in every language
COMMAS = frozenset(",،")

_TOKEN = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*|[+&;]")
_AROUND = " \t\n,،.;:?!？。؟…-–—+&"


@dataclass(frozen=True)
class _Marks:
    """Words of one language by which the beginning of a part is recognized."""

    joints: frozenset[str]
    asking: frozenset[str]
    before: frozenset[str]
    verbs: frozenset[str]
    subjects: frozenset[str]

    def begins(self, said: Sequence[str]) -> bool:
        """Whether these words begin a question."""
        for n in range(min(AHEAD + 1, len(said))):
            if said[n] in self.asking or (n + 1 < len(said) and said[n] in self.verbs and said[n + 1] in self.subjects):
                return True
            if said[n] not in self.before:
                return False
        return False

    def asks(self, said: Sequence[str]) -> bool:
        """Whether these words contain a question."""
        return not self.asking.isdisjoint(said) or (bool(said) and said[0] in self.verbs) or self.begins(said)


@dataclass(frozen=True)
class AskedPart:
    """A part of a question and its ranked units."""

    question: str
    findings: Findings  # not empty
    sure: Sure | None

    @property
    def answered(self) -> bool:
        """Whether the best unit surely answers the part."""
        return self.sure is not None and self.sure.of == "unit"

    def cited(self, sources: Sequence[Source]) -> Part:
        """The part for the stage's message, with the numbers of the sources."""
        return Part(question=self.question, evidence=self.findings.cited(sources), sure=self.sure)


def parts(question: str, lang: str) -> tuple[str, ...]:
    """The two parts, in their order; empty unless there are surely two.

    Args:
        lang: language tag of the question.
    """
    if len(question) > LONGEST:
        return ()
    primary = lang.partition("-")[0].lower()
    for each in dict.fromkeys((primary, *sorted(spoken(question)))):
        if each in _marks() and (found := _parted(question, each, _marks()[each])):
            return found
    return ()


async def by_part(pieces: Sequence[str], found: Retrieval, hits: Sequence[Hit], near: Sequence[Hit]) -> list[AskedPart]:
    """Each part with the units ranked for it. Raises: Retryable: the embedder is away."""
    if not pieces or found.model is None or found.vector is None:
        return []
    vectors = await asyncio.gather(*map(found.model.query, pieces))
    seen, common, weighed = found.candidates, found.common, list[AskedPart]()
    for piece, vector in zip(pieces, vectors, strict=True):
        if not weighed:
            findings = near_topic = weigh(piece, vector, hits, near, seen.terms, seen.total, common)
        else:
            sense = vector + WHOLE * found.vector
            sense = sense / (float(np.linalg.norm(sense)) or 1.0)
            findings = weigh(
                piece, sense.astype(np.float32), hits, near, seen.terms, seen.total, common, topic=pieces[0]
            )
            near_topic = findings.preferring(weighed[0].findings.units[0].hit.page_key)
        if not findings.units:
            return []
        # The bonus of the first part's page must not raise the chance of a unit that is best without it.
        surely = findings if findings.units[0].place == near_topic.units[0].place else near_topic
        weighed.append(AskedPart(piece, near_topic, sureness(surely, found.model.profile.sureness)))
    return weighed


def _parted(question: str, lang: str, marks: _Marks) -> tuple[str, ...]:
    pieces: list[str] = []
    start, by_comma = 0, False
    for end, begin, comma in (*_cuts(question, lang, marks), (len(question), len(question), False)):
        piece = question[start:end].strip(_AROUND)
        if not pieces or (marks.asks(_said(pieces[-1])) and marks.asks(_said(piece))):
            if by_comma:
                return ()  # "who knows, when ...", or three things
            pieces.append(piece)
        else:  # a piece without a question belongs to the piece before
            pieces[-1] = question[question.index(pieces[-1]) : end].strip(_AROUND)
        start, by_comma = begin, comma
    if len(pieces) != PARTS or any(len(words(piece)) < LEAST for piece in pieces):
        return ()
    first, second = (set(words(piece)) for piece in pieces)
    if _said(pieces[0])[-1] in marks.asking:
        return ()  # "when and where is the market"
    if not first - stopwords().get(lang, frozenset()) - marks.asking:
        return ()
    if second <= stopwords().get(lang, frozenset()) and second & _negations(lang):
        return ()
    return tuple(pieces)


def _cuts(question: str, lang: str, marks: _Marks) -> Iterator[tuple[int, int, bool]]:
    """(end of a part, beginning of the next, whether only a comma separates them)."""
    starts = {sentence.start for sentence in split_sentences(question, lang)[1:]}
    tokens = list(_TOKEN.finditer(question))
    said = [token.group().casefold() for token in tokens]
    for n, token in enumerate(tokens[1:], 1):
        begins = marks.begins(said[n : n + 2 + AHEAD])
        if said[n] in SIGNS or said[n] in marks.joints:
            if n + 1 < len(tokens) and marks.begins(said[n + 1 : n + 3 + AHEAD]):
                yield token.start(), tokens[n + 1].start(), False
        elif said[n] not in marks.asking and said[n][:1] in marks.joints and said[n][1:] in marks.asking:
            yield token.start(), token.start() + 1, False
        elif begins and token.start() in starts:
            yield token.start(), token.start(), False
        elif begins and question[tokens[n - 1].end() : token.start()].lstrip()[:1] in COMMAS:
            yield token.start(), token.start(), True


def _said(text: str) -> list[str]:
    return [token.group().casefold() for token in _TOKEN.finditer(text)]


def _negations(lang: str) -> frozenset[str]:
    return frozenset(words(table("negations").get(lang, "")))


@cache
def _marks() -> Mapping[str, _Marks]:
    """Language -> its words."""
    found = {
        name: {lang: frozenset(said.split()) for lang, said in by.items()} for name, by in sentences("parts").items()
    }
    none: frozenset[str] = frozenset()
    names = ("joints", "asking", "before", "verbs", "subjects")
    return {lang: _Marks(*(found[name].get(lang, none) for name in names)) for lang in found["asking"]}
