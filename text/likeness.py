"""How like two words are: for a question's words that the pages have in another form, in a compound or spelled right.

parking  parking    1.0        Ausweis  Personalausweis  0.8       hundestoier  hundesteuer  0.9
open     opening    0.85       permit   parking          0
"""

from __future__ import annotations

from collections.abc import Iterable

from rapidfuzz.distance import Levenshtein

SHORTEST = 4  # letters of a word that may be a part of another, or misspelled
COMMON = 4  # letters at the beginning that words of one stem share, at least
PART, WHOLE = 0.8, 0.7  # the question's word is a part of the page's, or the other way round
TYPO = 0.75  # least similarity of a word that is another one misspelled
ENDING = 2  # letters at most that an inflected form has besides its stem


def likeness(word: str, others: Iterable[str], *, misspelled: bool = True) -> dict[str, float]:
    """Those of the others that are like the word, each with how much, 0..1. All folded (text.words).

    Args:
        misspelled: whether the word may be another one misspelled. One that is known is none: "abmelden" is not
            "anmelden".
    """
    return {other: like for other in others if (like := _like(word, other, misspelled))}


def _like(word: str, other: str, misspelled: bool) -> float:
    if word == other:
        return 1.0
    if min(len(word), len(other)) < SHORTEST:
        return 0.0
    common = _common_beginning(word, other)
    if common >= COMMON and common >= min(len(word), len(other)) - ENDING:
        return 0.95 if abs(len(word) - len(other)) <= ENDING else 0.85
    if word in other:
        return PART
    if other in word and len(other) > SHORTEST:
        return WHOLE
    if misspelled and min(len(word), len(other)) > SHORTEST:
        similar = Levenshtein.normalized_similarity(word, other, score_cutoff=TYPO)
        return 0.9 * similar
    return 0.0


def _common_beginning(word: str, other: str) -> int:
    """Letters."""
    for n, (one, two) in enumerate(zip(word, other, strict=False)):
        if one != two:
            return n
    return min(len(word), len(other))
