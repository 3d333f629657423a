"""Alike: the likeness of two questions, by their meaning and by their words.

    "What does a library card cost?"   "How much is a library card?"   ─▶ alike: a price, of a library card
    "What does a library card cost?"   "What does a parking card cost?"  ─▶ not: of another card
    "What does a library card cost?"   "Where do I get a library card?"  ─▶ not: something else is wanted

Meaning alone confuses all three; words alone miss most paraphrases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pipelines.query.extractive.certainty import asked as wanted
from pipelines.query.live.corrections import asked_words, telling
from schemas.correction import Reach
from text.language import spoken
from text.likeness import Likeness

# Reach of a correction -> least likeness of a question that it answers: docs/decisions/040-corrections.md.
LEAST: Mapping[Reach, float] = {"same": 1.0, "alike": 0.77, "wide": 0.62}
ASKED = 64  # words that are compared; a question says what it is about in fewer
MEANING = 0.5  # of the likeness; the rest are the words


@dataclass(frozen=True)
class AskedQuestion:
    """A question with the parts that are compared."""

    text: str
    lang: str

    @cached_property
    def words(self) -> tuple[str, ...]:
        return asked_words(self.text)

    @cached_property
    def wants(self) -> frozenset[str]:
        """The kinds of things that the question asks for: a price, a time, ..."""
        return frozenset(self._asked[0])

    @cached_property
    def subject(self) -> Sequence[str]:
        """The words that name the subject. "car" is one, although it is a stop word in French."""
        said = telling(self.text, self._langs)
        foreign = [word for word in said if word not in telling(self.text) and len(word) > 1]
        return ([*self._asked[1], *foreign] or said)[:ASKED]

    @cached_property
    def numbers(self) -> frozenset[str]:
        return frozenset(word for word in self.words if any(map(str.isdecimal, word)))

    @cached_property
    def likeness(self) -> Likeness:
        return Likeness(self.subject)

    @cached_property
    def _asked(self) -> tuple[Sequence[str], Sequence[str]]:
        return wanted(self.text, self._langs)

    @cached_property
    def _langs(self) -> Sequence[str]:
        return list(dict.fromkeys((self.lang.partition("-")[0], *sorted(spoken(self.text)))))


def alike(one: AskedQuestion, other: AskedQuestion, cosine: float, reach: Reach = "alike") -> float:
    """The likeness of two questions, 0..1; 1 for the same words.

    Args:
        cosine: of their centred vectors.
        reach: with `wide`, questions that want different things of the same subject are alike too.
    """
    if one.words == other.words:
        return 1.0
    if reach != "wide" and (not _same_thing(one.wants, other.wants) or one.numbers != other.numbers):
        return 0.0
    shared = (_share(one.subject, other.likeness) + _share(other.subject, one.likeness)) / 2
    return min(MEANING * max(cosine, 0.0) + (1 - MEANING) * shared, 0.99)


def _same_thing(one: frozenset[str], other: frozenset[str]) -> bool:
    return one == other or (bool(one and other) and (one <= other or other <= one))


def _share(words: Sequence[str], there: Likeness) -> float:
    """The share of the words that are there, in any form."""
    # Misspellings do not match: "abmelden" is close to "anmelden", but its opposite.
    found = sum(max(there.of(word, misspelled=False).values(), default=0.0) for word in words)
    return found / len(words) if words else 0.0
