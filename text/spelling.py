"""Spelling: puts misspelled words right, by similar words that pages have.

libary   library    1 edit      hundestoier  hundesteuer  2 edits, of a long word
"""

from __future__ import annotations

from collections.abc import Iterable

from rapidfuzz.distance import OSA

from text.dictionary import in_dictionary
from text.folding import fold

SHORTEST, LONG = 5, 9  # letters of a word that may be misspelled, and of one in which two letters may be wrong
LONGEST = 60  # letters


def respelled(word: str, similar: Iterable[str]) -> str:
    """The first of these words that differs from a misspelled one by a letter or two; empty if none does.

    Swapped neighbours are one edit. The first letter and the word's being in no dictionary are certain: what visitors
    type first is right, and "diving" is no correction of "driving".
    """
    plain = fold(word)
    if not SHORTEST <= len(plain) <= LONGEST or in_dictionary(plain):
        return ""
    most = 2 if len(plain) >= LONG else 1
    near = (other for other in similar if fold(other)[:1] == plain[:1])
    return next((other for other in near if OSA.distance(plain, fold(other), score_cutoff=most) <= most), "")
