"""Similarity of two words, to match a question's words with other forms, compounds or correct spellings on pages.

parking  parking    1.0        Ausweis  Personalausweis  0.8       hundestoier  hundesteuer  0.9
open     opening    0.85       permit   parking          0
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain

from rapidfuzz import process
from rapidfuzz.distance import Levenshtein, Prefix

SHORTEST = 4  # letters of a word that may be a part of another, or misspelled
COMMON = 4  # least common prefix of words with the same stem
PART, WHOLE = 0.8, 0.7  # the question's word is a part of the page's word, or the other way round
TYPO = 0.75  # least similarity of a misspelled word
ENDING = 2  # most letters of an inflection
LONGEST = 60  # letters; longer words only match themselves


class Likeness:
    """Indexes the words of texts, to find similar ones. `words`: folded (text.words)."""

    def __init__(self, words: Iterable[str]) -> None:
        self._words = frozenset(words)
        self._long = [word for word in self._words if SHORTEST <= len(word) <= LONGEST]
        self._joined = "\n".join(("", *self._long, ""))
        self._beginning: defaultdict[str, list[str]] = defaultdict(list)
        self._of_length: defaultdict[int, list[str]] = defaultdict(list)
        for word in self._long:
            self._beginning[word[:COMMON]].append(word)
            self._of_length[len(word)].append(word)

    def of(self, word: str, *, misspelled: bool = True) -> dict[str, float]:
        """The similar words, with their similarity, 0..1.

        Args:
            word: folded.
            misspelled: whether it may be misspelled. Pass False for known words: "abmelden" is no misspelled
                "anmelden".
        """
        found = {word: 1.0} if word in self._words else {}
        if not SHORTEST <= len(word) <= LONGEST:
            return found
        ways = [self._inflected(word), self._with_it_inside(word), self._inside_it(word)]
        for other, like in chain(*ways, self._misspelled(word) if misspelled and len(word) > SHORTEST else ()):
            found.setdefault(other, like)
        return found

    def _inflected(self, word: str) -> Iterator[tuple[str, float]]:
        for other in self._beginning.get(word[:COMMON], ()):
            if Prefix.similarity(word, other) >= min(len(word), len(other)) - ENDING:
                longer = len(word) - len(other)
                # "Hundekot" has a part more than "Hund", so it is no form of it.
                yield other, 0.95 if abs(longer) <= ENDING else 0.85 if longer < 0 else WHOLE

    def _with_it_inside(self, word: str) -> Iterator[tuple[str, float]]:
        at = self._joined.find(word)
        while at >= 0:
            end = self._joined.index("\n", at)
            yield self._joined[self._joined.rindex("\n", 0, at) + 1 : end], PART
            at = self._joined.find(word, end + 1)

    def _inside_it(self, word: str) -> Iterator[tuple[str, float]]:
        for length in self._of_length:
            if SHORTEST < length < len(word):
                parts = (word[start : start + length] for start in range(len(word) - length + 1))
                yield from ((part, WHOLE) for part in parts if part in self._words)

    def _misspelled(self, word: str) -> Iterator[tuple[str, float]]:
        for length, others in self._of_length.items():
            if length > SHORTEST and TYPO * max(length, len(word)) <= min(length, len(word)):
                similarity = Levenshtein.normalized_similarity
                for other, like, _ in process.extract(word, others, scorer=similarity, score_cutoff=TYPO, limit=None):
                    yield other, 0.9 * like
