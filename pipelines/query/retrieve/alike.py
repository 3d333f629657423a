"""Alike: the likeness of two questions, by their meaning and by their words.

    "What does a library card cost?"   "How much is a library card?"   ─▶ alike: a price, of a library card
    "What does a library card cost?"   "What does a parking card cost?"  ─▶ not: of another card
    "What does a library card cost?"   "Where do I get a library card?"  ─▶ not: something else is wanted
    "When does it close on Fridays?"   "When does it close on Sundays?"  ─▶ not: of another day

Meaning alone confuses all three; words alone miss most paraphrases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pipelines.query.extractive.certainty import asked as wanted
from pipelines.query.extractive.days import closing_stems, weekdays_in
from pipelines.query.live.corrections import asked_words, telling
from schemas.correction import Reach
from text.folding import fold
from text.language import spoken
from text.likeness import Likeness
from text.words import stems

# Reach of a correction -> least likeness of a question that it answers: docs/decisions/040-corrections.md.
LEAST: Mapping[Reach, float] = {"same": 1.0, "alike": 0.77, "wide": 0.62}
ASKED = 64  # words that are compared; a question says what it is about in fewer
DATED = 400  # characters that are searched for days, and for what closes
MEANING = 0.5  # of the likeness; the rest are the words
NAMED = 0.9  # least share of the corrected subject's words that are in the question, in any form


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
        """The words that name the subject, folded. "car" is one, although it is a stop word in French."""
        said, anywhere = telling(self.text, self._langs), frozenset(telling(self.text))
        foreign = [word for word in said if word not in anywhere and len(word) > 1]
        return list(map(fold, ([*self._asked[1], *foreign] or said)[:ASKED]))

    @cached_property
    def numbers(self) -> frozenset[str]:
        return frozenset(word for word in self.words if any(map(str.isdecimal, word)))

    @cached_property
    def weekdays(self) -> frozenset[int | str]:
        return weekdays_in(self.text[:DATED], self._langs)

    @cached_property
    def closing(self) -> bool:
        """Whether the question asks when something closes, or whether it is closed."""
        return any(not closing_stems(lang).isdisjoint(stems(self.text[:DATED], lang)) for lang in self._langs)

    @cached_property
    def likeness(self) -> Likeness:
        return Likeness(self.subject)

    @cached_property
    def _asked(self) -> tuple[Sequence[str], Sequence[str]]:
        return wanted(self.text, self._langs)

    @cached_property
    def _langs(self) -> Sequence[str]:
        return list(dict.fromkeys((self.lang.partition("-")[0], *sorted(spoken(self.text)))))


def alike(asked: AskedQuestion, corrected: AskedQuestion, cosine: float, reach: Reach = "alike") -> float:
    """The likeness of a question to a correction's, 0..1; 1 for the same words.

    Args:
        cosine: of their centred vectors.
        reach: with `wide`, questions that want different things of the same subject are alike too.
    """
    if asked.words == corrected.words:
        return 1.0
    if reach != "wide" and not _same_thing(asked, corrected):
        return 0.0
    named = _share(corrected.subject, asked.likeness)
    if reach != "wide" and named < NAMED:
        return 0.0
    shared = (_share(asked.subject, corrected.likeness) + named) / 2
    return min(MEANING * max(cosine, 0.0) + (1 - MEANING) * shared, 0.99)


def _same_thing(asked: AskedQuestion, corrected: AskedQuestion) -> bool:
    """Whether both want the same kind of thing, of the same number, on the same days. A correction without a day is for
    all of them.
    """
    one, other = asked.wants, corrected.wants
    same_wants = one == other or (bool(one and other) and (one <= other or other <= one))
    same_days = not corrected.weekdays or asked.weekdays == corrected.weekdays
    return same_wants and asked.numbers == corrected.numbers and same_days and asked.closing == corrected.closing


def _share(words: Sequence[str], there: Likeness) -> float:
    """The share of the words that are there, in any form."""
    # Misspellings do not match: "abmelden" is close to "anmelden", but its opposite.
    found = sum(max(there.of(word, misspelled=False).values(), default=0.0) for word in words)
    return found / len(words) if words else 0.0
