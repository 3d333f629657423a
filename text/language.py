"""Detects a text's language by its stop words (`prompts/stopwords.yaml`), or by its letters.

A few languages have a list of stop words; py3langid detects a hundred more from the bytes of a text. It is the only
candidate that is small (4.6 MB; lingua: 170 MB) and needs no compiler (fastText's wrappers do for some versions of
Python). It takes 60 us a question; its model takes 0.6 s to load, and 75 MB of memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from math import fsum

from py3langid.langid import MODEL_FILE, LanguageIdentifier

from prompts.loader import table
from text.compounds import DICTIONARY, with_umlauts
from text.words import words

# Least probability of a detected language. Of 260 everyday questions in 13 languages, many of one or two words, 222 are
# right, one is wrong, and 37 ("sauna?", "hiya") are undetected; with 0.3 it is 233, three and 24.
SURE = 0.5
FEW = 2  # stop words of a language that no page is in: letters must agree
SHORT = 2  # words of a question: one stop word among them may be another language's noun
# Languages of the model that are no usual tags of websites.
_SAME = {"arz": "ar", "ary": "ar", "wuu": "zh", "yue": "zh"}
# Languages that are too rare for a question of a few words.
_UNLIKELY = frozenset(("an", "eo", "la", "oc", "sa", "vo", "wa"))


@cache
def stopwords() -> Mapping[str, frozenset[str]]:
    return {lang: frozenset(words(said)) for lang, said in table("stopwords").items()}


def spoken(text: str) -> frozenset[str]:
    """The languages whose stop words are most frequent in the text: several if equal, none without stop words."""
    said = words(text)
    counts = {lang: sum(word in theirs for word in said) for lang, theirs in stopwords().items()}
    most = max(counts.values(), default=0)
    return frozenset(lang for lang, count in counts.items() if count == most) if most else frozenset()


def language_of(question: str, languages: Sequence[str]) -> str:
    """The language in which to answer a question without a language tag.

    Args:
        languages: the site's languages; the first is the default.
    """
    found = _detected(question, languages)
    ours = (lang for lang in languages if lang.partition("-")[0] in found)
    return next(ours, min(found) if len(found) == 1 else languages[0])


def tells_language(question: str, languages: Sequence[str]) -> bool:
    """Whether the question's words show its language among the site's, or that it is in none of them."""
    found = _detected(question, languages)
    if (
        len(said := words(question)) <= SHORT
        and sum(word in stopwords().get(lang, ()) for lang in found for word in said) == 1
    ):
        return False  # "bin" of "bin day" is a stop word in German alone
    return len(found) == 1 or sum(lang.partition("-")[0] in found for lang in languages) == 1


def _detected(question: str, languages: Sequence[str]) -> frozenset[str]:
    """The possible languages: several if neither words nor letters decide, none if they show too little."""
    found = spoken(question)
    few = len(found) == 1 and sum(word in stopwords()[min(found)] for word in words(question)) <= FEW
    foreign = few and all(lang.partition("-")[0] not in found for lang in languages)
    identity = identified(_spelled(question, languages)) if len(found) != 1 or foreign else None
    if foreign and identity not in found:
        # "Alte" of "alte mühle preis" is a stop word in Romanian alone, "is" and "ne" of "was is ne" in Hungarian.
        found = frozenset()
    ours = any(lang.partition("-")[0] == identity for lang in languages)
    # Stop words cannot detect a language without a list of them.
    if identity and (identity in found or identity not in stopwords() or (not found and (ours or not foreign))):
        return frozenset((identity,))
    return found


def _spelled(question: str, languages: Sequence[str]) -> str:
    """The question, with umlauts that were typed without their keys: "buergerbuero" looks like Luxembourgish."""
    german = next((lang for lang in languages if lang.partition("-")[0] == DICTIONARY), "")
    return with_umlauts(question, german)


def identified(text: str) -> str | None:
    """The language of a text of any length as a primary subtag ("de"); None: its letters show too little."""
    chances: dict[str, list[float]] = {}
    for label, chance in _identifier().rank(text):
        tag = _SAME.get(label, label)
        if len(tag) == 2 and tag not in _UNLIKELY:
            chances.setdefault(tag, []).append(chance)
    sums = {tag: fsum(each) for tag, each in chances.items()}
    whole = fsum(sums.values())
    best = max(sums, key=lambda tag: sums[tag])
    return best if whole and sums[best] >= SURE * whole else None


@cache
def _identifier() -> LanguageIdentifier:
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
