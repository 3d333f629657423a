"""Wording: rewrites a question for the search.

"Wo ist denn eigentlich die bib?" ─▶ without particles ─▶ "Wo ist die bib?"
─▶ no page has "bib", some page has "Bibliothek" ─▶ "Wo ist die bib? Bibliothek"
"Wann hat das Bad auf?" ─▶ "Wann hat das Bad geöffnet?"
"libary card" ─▶ no page and no dictionary has "libary", some page has "library" ─▶ "library card"
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from itertools import pairwise

from prompts.loader import table
from text.dictionary import DICTIONARIES
from text.language import spoken
from text.spelling import respelled
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


def with_whole_verb(question: str) -> str:
    """The question with a separable verb's last part as pages write the whole (prompts/separable-verbs.yaml)."""
    spans = list(word_spans(question))
    said = [question[start:end].lower() for start, end in spans]
    for verbs, last, adjoining, whole in _separable():
        ends = said[-1:] == [last] and not verbs.isdisjoint(said)
        behind = (n for n, pair in enumerate(pairwise(said), 1) if adjoining and pair[0] in verbs and pair[1] == last)
        at = len(said) - 1 if ends else next(behind, None)
        if at is not None:
            start, end = spans[at]
            return question[:start] + whole + question[end:]
    return question


def other_names(question: str, langs: Collection[str], known: Collection[str]) -> list[str]:
    """What pages may call the words that the index does not have (prompts/other-names.yaml).

    Args:
        langs: the pages' languages.
        known: stems of the question that the index has.
    """
    names = _names()
    unknown = (word for word in words(question) if word in names and not is_known(word, langs, known))
    return list(dict.fromkeys(name for word in unknown for name in names[word]))[:MOST]


def spelled(
    question: str, langs: Collection[str], known: Collection[str], similar: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    """Misspelled words of a question, with their spelling on the pages.

    Only in languages with a dictionary: without one, any word that no page has looks misspelled.

    Args:
        langs: the pages' languages.
        known: stems of the question that the index has.
        similar: words of the question that no page has -> similar words of pages.
    """
    pages = {lang.partition("-")[0] for lang in langs}
    asked = (spoken(question) or pages) & pages
    if not asked or not asked <= DICTIONARIES:
        return {}
    found = {word: respelled(word, near) for word, near in similar.items() if not is_known(word, langs, known)}
    return {word: other for word, other in found.items() if other}


def with_spelling(question: str, spelling: Mapping[str, str]) -> str:
    """The question with these words in their other spelling."""
    text, behind = "", 0
    for start, end in word_spans(question):
        if (right := spelling.get(question[start:end].lower())) is not None:
            text, behind = text + question[behind:start] + right, end
    return text + question[behind:]


def is_known(name: str, langs: Iterable[str], known: Collection[str]) -> bool:
    """Whether the index has a name in one of the languages. A compound counts as a whole."""
    return any(all(word[0] in known for word in stems_of_words(name, lang)) for lang in langs)


@cache
def _particles(lang: str) -> frozenset[str]:
    return frozenset(words(table("particles").get(lang, "")))


@cache
def _separable() -> list[tuple[frozenset[str], str, bool, str]]:
    """(verbs, last part, whether it counts right behind the verb as well, what is searched) of each row."""
    rows = ((*re.split(r" (\.\.\.|\+) ", verb), whole) for verb, whole in table("separable-verbs").items())
    return [(frozenset(verbs.split()), last, mark == "+", whole) for verbs, mark, last, whole in rows]


@cache
def _names() -> dict[str, list[str]]:
    return {
        word: [name.strip() for name in names.split(",")]
        for listed, names in table("other-names").items()
        for word in listed.split(", ")
    }
