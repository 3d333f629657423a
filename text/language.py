"""Which language a text is in: told by its stop words, which `prompts/stopwords.yaml` lists, or by its letters.

Stop words tell the few languages that have a list; py3langid tells a hundred more by the bytes of a text. Of what was
looked at it is the one that is small (4.6 MB; lingua: 170 MB) and comes without a compiler (fastText's wrappers do
not, for all versions of Python). It takes 60 us a question; its model takes 0.6 s to load, and 75 MB of memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from math import fsum

from py3langid.langid import MODEL_FILE, LanguageIdentifier

from prompts.loader import table
from text.words import words

# Least probability of the language that is named: of 260 everyday questions in 13 languages, many of one or two words,
# 222 are told rightly, one wrongly, and 37 ("sauna?", "hiya") not at all; at 0.3 it is 233, three and 24.
SURE = 0.5
# What the model tells apart and nobody tags a website with.
_SAME = {"arz": "ar", "ary": "ar", "wuu": "zh", "yue": "zh"}
# Written by too few to be meant by a question of a few words.
_UNLIKELY = frozenset(("an", "eo", "la", "oc", "sa", "vo", "wa"))


@cache
def stopwords() -> Mapping[str, frozenset[str]]:
    """By language: words that say nothing of what a question is about."""
    return {lang: frozenset(words(said)) for lang, said in table("stopwords").items()}


def spoken(text: str) -> frozenset[str]:
    """Whose stop words a text uses most; several that use the same, none where there are none."""
    said = words(text)
    counts = {lang: sum(word in theirs for word in said) for lang, theirs in stopwords().items()}
    most = max(counts.values(), default=0)
    return frozenset(lang for lang, count in counts.items() if count == most) if most else frozenset()


def language_of(question: str, languages: Sequence[str]) -> str:
    """The language to answer a question in that came without one.

    Args:
        languages: the site's, the first of which it is where nothing speaks for another.
    """
    heard = _heard(question)
    ours = (lang for lang in languages if lang.partition("-")[0] in heard)
    return next(ours, min(heard) if len(heard) == 1 else languages[0])


def tells_language(question: str, languages: Sequence[str]) -> bool:
    """Whether the question's own words say which of a site's languages it is in, or that it is in none of them."""
    heard = _heard(question)
    return len(heard) == 1 or sum(lang.partition("-")[0] in heard for lang in languages) == 1


def _heard(question: str) -> frozenset[str]:
    """Several where its words are those of several and its letters do not decide, none where they say too little."""
    heard = spoken(question)
    told = identified(question) if len(heard) != 1 else None
    # One that has no list of stop words is never heard by them.
    return frozenset((told,)) if told and (not heard or told in heard or told not in stopwords()) else heard


def identified(text: str) -> str | None:
    """The language of a text, however short: a primary subtag ("de"), or None where its letters say too little."""
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
