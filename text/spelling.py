"""Spelling: puts misspelled words right, by similar words that pages have.

libary   library    1 edit      hundestoier  hundesteuer  2 edits, of a long word      cafe  café  accents alone
"""

from __future__ import annotations

from collections.abc import Sequence

from rapidfuzz.distance import OSA

from text.dictionary import in_dictionary
from text.folding import fold

SHORTEST, LONG = 5, 9  # letters of a word that may be misspelled, and of one in which two letters may be wrong
SHORTEST_ACCENTED = 4  # letters of a word that may lack its accents
LONGEST = 60  # letters


def respelled(word: str, similar: Sequence[str]) -> str:
    """The first of these words that differs from a misspelled one by a letter or two; empty if none does.

    One that differs by accents alone goes first, even where a dictionary has the word without them. Swapped neighbours
    are one edit. The first letter and the word's being in no dictionary are certain: what visitors type first is right,
    and "diving" is no correction of "driving".
    """
    plain = fold(word)
    if len(plain) >= SHORTEST_ACCENTED and (accented := next((each for each in similar if fold(each) == plain), "")):
        return accented
    if not SHORTEST <= len(plain) <= LONGEST or in_dictionary(plain):
        return ""
    most = 2 if len(plain) >= LONG else 1
    near = (other for other in similar if fold(other)[:1] == plain[:1])
    return next((other for other in near if OSA.distance(plain, fold(other), score_cutoff=most) <= most), "")
