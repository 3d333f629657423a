"""Which language a text is in, told by its stop words, which `prompts/stopwords.yaml` lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from prompts.loader import table
from text.words import words


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
    heard = spoken(question)
    ours = (lang for lang in languages if lang.partition("-")[0] in heard)
    return next(ours, min(heard) if len(heard) == 1 else languages[0])
