"""Wording: rewrites a question for the search.

"Wo ist denn eigentlich die bib?" ─▶ without particles ─▶ "Wo ist die bib?"
─▶ no page has "bib", some page has "Bibliothek" ─▶ "Wo ist die bib? Bibliothek"
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cache

from prompts.loader import table
from text.words import stems_of_words, word_spans, words

FEWEST = 2  # words that are left of a question
MOST = 8  # names that are added to it


def without_particles(question: str, lang: str) -> str:
    """The question without particles (prompts/particles.yaml), if enough other words are left."""
    particles = _particles(lang.partition("-")[0])
    kept = sum(word not in particles for word in words(question))
    if not particles or kept < FEWEST:
        return question
    text, behind = "", 0
    for start, end in word_spans(question):
        if question[start:end].casefold() in particles:
            text, behind = text + question[behind:start], end
    return " ".join((text + question[behind:]).split()) if behind else question


def other_names(question: str, langs: Collection[str], known: Collection[str]) -> list[str]:
    """The full names of short names that the index does not have (prompts/short-names.yaml).

    Args:
        langs: the pages' languages.
        known: stems of the question that the index has.
    """
    names = _whole_names()
    short = (word for word in words(question) if word in names and not is_known(word, langs, known))
    return list(dict.fromkeys(name for word in short for name in names[word]))[:MOST]


def is_known(name: str, langs: Iterable[str], known: Collection[str]) -> bool:
    """Whether the index has a name in one of the languages. A compound counts as a whole."""
    return any(all(word[0] in known for word in stems_of_words(name, lang)) for lang in langs)


@cache
def _particles(lang: str) -> frozenset[str]:
    return frozenset(words(table("particles").get(lang, "")))


@cache
def _whole_names() -> dict[str, list[str]]:
    return {short: [name.strip() for name in names.split(",")] for short, names in table("short-names").items()}
