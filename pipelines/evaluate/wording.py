"""How an answer's words compare with a reference answer's, as the scripts of SQuAD and MLQA count them.

SQuAD (Rajpurkar et al., 2016, 2018): small letters, no ASCII punctuation, no articles, single spaces. For German and
Spanish MLQA (Lewis et al., 2020) takes away their own articles and all punctuation of Unicode; what is done for other
languages is the same, with what is written without spaces cut into words.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Sequence

from text.words import words

ENGLISH = "en"
_ARTICLES = {
    ENGLISH: "a an the",
    "de": "ein eine einen einem eines einer der die das den dem des",
    "es": "un una unos unas el la los las",
    "fr": "un une des le la les",
    "it": "un uno una il lo la i gli le",
    "nl": "een de het",
    "pt": "um uma uns umas o a os as",
}
_UNSPACED = frozenset(("ja", "km", "lo", "my", "th", "zh"))
_PUNCTUATION = frozenset(string.punctuation)


def tokens(text: str, lang: str | None = ENGLISH) -> list[str]:
    """The words that count, in their order."""
    primary = (lang or ENGLISH).partition("-")[0]
    kept = "".join(letter for letter in text.lower() if not _is_punctuation(letter, primary))
    if primary in _UNSPACED:
        return words(kept)
    articles = _ARTICLES.get(primary)
    if articles:
        kept = re.sub(rf"\b({articles.replace(' ', '|')})\b", " ", kept)
    return kept.split()


def exact(said: str, reference: str, lang: str | None = ENGLISH) -> float:
    """EM: whether the words are the same."""
    return float(tokens(said, lang) == tokens(reference, lang))


def covers(said: str, reference: str, lang: str | None = ENGLISH) -> float:
    """Cover-EM: whether the reference's words stand in the answer, one after the other.

    By words, not by letters: "18" is not in "118".
    """
    ours, theirs = tokens(said, lang), tokens(reference, lang)
    if not theirs:
        return float(not ours)
    return float(any(ours[at : at + len(theirs)] == theirs for at in range(len(ours) - len(theirs) + 1)))


def token_f1(said: str, reference: str, lang: str | None = ENGLISH) -> float:
    """F1 of the words that both have, as often as both have them. With no word on either side: whether on both."""
    ours, theirs = tokens(said, lang), tokens(reference, lang)
    if not ours or not theirs:
        return float(ours == theirs)
    common = sum((Counter(ours) & Counter(theirs)).values())
    if not common:
        return 0.0
    precision, recall = common / len(ours), common / len(theirs)
    return 2 * precision * recall / (precision + recall)


def folded(text: str) -> str:
    """One space for any, also for those that keep figures and units together; case does not count."""
    return re.sub(r"\s+", " ", text).casefold()


def says(text: str, spellings: Sequence[str]) -> bool:
    """Whether a statement stands in a text in one of its spellings."""
    said = folded(text)
    return any(folded(spelling) in said for spelling in spellings)


def _is_punctuation(letter: str, primary: str) -> bool:
    return letter in _PUNCTUATION or (primary != ENGLISH and unicodedata.category(letter).startswith("P"))


def most_agreed(answers: Sequence[str], lang: str | None = ENGLISH) -> int:
    """Place of the answer that shares most words with all others, the first of equals; at least one is given.

    Self-consistency (Wang et al., 2022) takes the majority of sampled answers. Of answers that are equal or share
    nothing this is the majority; of longer ones, which are never equal, the most typical.
    """
    return max(range(len(answers)), key=lambda at: (sum(token_f1(answers[at], other, lang) for other in answers), -at))
