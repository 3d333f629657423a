"""Misspelled twins of everyday questions: in each, one word of five letters and more lacks a letter, has one twice, or
has two swapped, as a seed has it. Its first letter stays, and no word is left as it was."""

from __future__ import annotations

import random

from text.language import stopwords
from text.words import word_spans

SHORTEST = 5  # letters of a word that is misspelled


def misspelled(question: str, seed: str) -> str:
    """The question with one misspelled word; as it is without a word that is long enough."""
    empty = frozenset[str]().union(*stopwords().values())
    spans = [
        (start, end)
        for start, end in word_spans(question)
        if end - start >= SHORTEST and question[start:end].isalpha() and question[start:end].casefold() not in empty
    ]
    if not spans:
        return question
    rng = random.Random(seed)
    start, end = rng.choice(spans)
    word = question[start:end]
    ways = [way for at in range(1, len(word)) for way in _ways(word, at) if way != word]
    return question[:start] + rng.choice(ways) + question[end:]


def _ways(word: str, at: int) -> tuple[str, str, str]:
    """Without the letter, with it twice, and with the next one before it."""
    swapped = word[:at] + word[at + 1 : at + 2] + word[at] + word[at + 2 :]
    return word[:at] + word[at + 1 :], word[: at + 1] + word[at:], swapped
