"""Names: what a question is about by name, and no page that was found knows: "remove a package from OpenUPM".

A name is in no dictionary of the question's language, or has a capital within a sentence. Whoever asks about a thing by
its name wants that thing and nothing like it, while an everyday word may stand for what a page calls otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from pipelines.query.extractive.certainty import day_words
from pipelines.query.search.ports import Hit
from text import dictionary
from text.compounds import parts
from text.language import identified, spoken, stopwords
from text.likeness import Likeness
from text.words import words

SHORTEST = 4  # letters
_WITHIN = re.compile(r"(?<=[\w,;]\s)[^\W\d_]\w*")  # of a sentence
_NOUNS = "de"  # a language whose nouns have capitals, as names have


def strange_names(question: str, found: Iterable[Hit]) -> list[str]:
    """The names in a question that none of these texts has, in any form or spelling.

    None where nobody can tell the question's language, or it has no dictionary here. A few words without a sign of
    their language are in that of the texts, if they have one.
    """
    found = list(found)
    written = {hit.lang.partition("-")[0] for hit in found}
    told = identified(question)
    langs = spoken(question) or ({told} if told else written if len(written) == 1 else frozenset())
    if not any(map(dictionary.loaded, langs)):
        return []
    empty = frozenset[str]().union(*stopwords().values(), *map(day_words, langs))
    named = set[str]()
    if _NOUNS not in langs and not question.isupper():
        named = {word.casefold() for word in _WITHIN.findall(question) if word[0].isupper()}
    asked = (word for word in dict.fromkeys(words(question)) if len(word) >= SHORTEST and word not in empty)
    names = [word for word in asked if not word.isdecimal() and not _is_word(word, langs, capital=word in named)]
    if not names:
        return []
    there = Likeness(word for hit in found for word in words(f"{hit.title} {hit.text}"))
    return [name for name in names if not there.of(name)]


def _is_word(word: str, langs: Collection[str], *, capital: bool) -> bool:
    return dictionary.is_word(word, capital=capital) or (_NOUNS in langs and len(parts(word, _NOUNS)) > 1)
