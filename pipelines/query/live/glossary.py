"""Glossary: what a site calls its things, and what visitors call them.

    term ─▶ language ─▶ names, of which the first is said and all are understood

What a visitor calls a thing is searched by the site's name of it, and answered by the visitor's: with a model, which
reads the names in its prompts, and without one. A glossary is written as pagewire.yaml has it; one that is changed
while the system runs (text_changes.py) is held to more than the file, for it comes over HTTP:

    Fundbüro: {en: [lost property, wallet], de: Fundstelle}
    Kranichmünde: {}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from itertools import accumulate
from typing import Any

import yaml

from prompts.loader import PromptError, plain
from schemas.base import is_language_tag

# Term -> language -> what it is called there; of several names the first is said, and all are understood.
Glossary = Mapping[str, Mapping[str, str | Sequence[str]]]

TERMS = 40  # of the glossary, in a prompt
MAX_TERMS = 500  # of a glossary that is changed while the system runs; each is looked for in each question
MAX_NAMES = 20  # of a term, in one language
MAX_NAME = 100  # characters

_SAME = str.maketrans("İı", "ii")  # Turkish's letters i, of which visitors write any; to `casefold` they are three


def called(term: str, glossary: Glossary, lang: str) -> str:
    """What a term is called in a language; itself where the glossary does not say."""
    names = glossary.get(term, {})
    return next(iter((*_names(names.get(lang, ())), *_names(names.get(lang.partition("-")[0], ())))), term)


def terms(glossary: Glossary, lang: str, text: str) -> str:
    """For the prompt of an answer: the terms in `text` and what the visitor's language calls them, one a line."""
    return "\n".join(
        f"{term}: {called(term, glossary, lang)}" for term in list(filter(holding(text), glossary))[:TERMS]
    )


def terms_back(glossary: Glossary, text: str) -> str:
    """For the rewriting of a question: what it calls things, in any language, and what the site calls them."""
    holds = holding(text)
    lines = (
        f"{name}: {term}"
        for term, names in glossary.items()
        for name in dict.fromkeys(name for those in names.values() for name in _names(those))
        if name != term and holds(name)
    )
    return "\n".join(list(lines)[:TERMS])


def widened(glossary: Glossary, lang: str, text: str) -> str:
    """A question as it is searched: after it, what the site and the visitor's language call the things it names."""
    holds = holding(text)
    meant = (
        term
        for term, names in glossary.items()
        if any(holds(name) for name in (term, *(name for those in names.values() for name in _names(those))))
    )
    searched = text
    for name in [name for term in meant for name in (term, called(term, glossary, lang))][:TERMS]:
        if not holding(searched)(name):
            searched += f" {name}"
    return searched


def read_glossary(text: str) -> dict[str, dict[str, tuple[str, ...]]]:
    """A glossary in YAML, as pagewire.yaml has it.

    Raises: PromptError: it is none, is too large, names nothing, or has terms that name each other in a circle.
    """
    given = plain("glossary", text)
    if not isinstance(given, dict):
        raise PromptError("glossary: must be terms, each with its names by language: `Fundbüro: {en: lost property}`")
    if len(given) > MAX_TERMS:
        raise PromptError(f"glossary: {len(given):,} terms, more than {MAX_TERMS:,}")
    found = {_word(term, "term"): _read_names(term, names) for term, names in given.items()}
    seen: dict[str, str] = {}
    for term in found:
        if (other := seen.setdefault(term.casefold(), term)) != term:
            raise PromptError(f"glossary: {other!r} and {term!r} are one term: capitals make no difference")
    _no_circle(found)
    return found


def written_glossary(glossary: Glossary) -> str:
    """As `read_glossary` reads it, one term after the other. Empty where there are no terms."""
    plain_names = {
        term: {
            lang: found[0] if len(found) == 1 else list(found)
            for lang, those in names.items()
            if (found := _names(those))
        }
        for term, names in glossary.items()
        if term.strip()
    }
    lines = (
        yaml.safe_dump({term: names}, allow_unicode=True, default_flow_style=None, width=10_000, sort_keys=False)
        for term, names in plain_names.items()
    )
    return "".join(lines).strip()


def _read_names(term: Any, given: Any) -> dict[str, tuple[str, ...]]:
    """Raises: PromptError."""
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise PromptError(f"glossary: {term}: must be names by language, `{{en: lost property}}`, or nothing, `{{}}`")
    found: dict[str, tuple[str, ...]] = {}
    for lang, names in given.items():
        if not isinstance(lang, str) or not is_language_tag(lang):
            quoted = ": put it in quotes" if not isinstance(lang, str) else ", such as `de` or `pt-BR`"
            raise PromptError(f"glossary: {term}: {lang!r} is no language{quoted}")
        listed = names if isinstance(names, list) else [names]
        if not 0 < len(listed) <= MAX_NAMES:
            raise PromptError(f"glossary: {term}.{lang}: {len(listed)} names, must be 1 to {MAX_NAMES}")
        found[lang] = tuple(dict.fromkeys(_word(name, f"{term}.{lang}") for name in listed))
    return found


def _word(given: Any, place: str) -> str:
    """One that may stand in a line of a prompt. Raises: PromptError."""
    if not isinstance(given, str):
        raise PromptError(f"glossary: {place}: {given!r} is not read as words: put it in quotes")
    word = given.strip()
    if not word:
        raise PromptError(f"glossary: {place}: is empty")
    if len(word) > MAX_NAME or not word.isprintable():
        raise PromptError(f"glossary: {place}: {word[:MAX_NAME]!r} must be one line of {MAX_NAME} characters at most")
    return word


def _no_circle(glossary: Mapping[str, Mapping[str, Sequence[str]]]) -> None:
    """A term may be another's name, but then that other must not be, in the end, its own: it would be unknown which of
    them the website uses. Raises: PromptError: names the circle."""
    known = {term.casefold(): term for term in glossary}
    named = {
        term: {known[low] for those in names.values() for name in those if (low := name.casefold()) in known} - {term}
        for term, names in glossary.items()
    }
    try:
        TopologicalSorter(named).prepare()
    except CycleError as err:
        raise PromptError(f"glossary: these terms name each other in a circle: {' ← '.join(err.args[1])}") from None


def _names(those: str | Sequence[str]) -> Sequence[str]:
    """The names that say something."""
    return [name for name in ((those,) if isinstance(those, str) else those) if name.strip()]


class WholeWord(str):
    """A name that is found only where the word ends with it, but for an s. Of a short one that says: "Perso" is no
    part of "Person"."""


def holding(text: str) -> Callable[[str], bool]:
    """Tells whether a word of the text begins with a term. Without a pattern: to compile one for each of a large
    glossary's terms takes longer than an answer may wait.
    """
    letters = [_folded(letter) for letter in text]
    folded, whole = "".join(letters), {0, *accumulate(map(len, letters))}  # the first s of ß is no letter by itself

    def begins(at: int) -> bool:
        before = folded[at - 1 : at]
        return at in whole and not (before.isalnum() or before == "_")

    def ends(at: int) -> bool:
        rest = folded[at : at + 2]
        return not rest[:1].isalnum() or (rest[0] == "s" and not rest[1:].isalnum())

    def holds(term: str) -> bool:
        sought = _folded(term)
        at = folded.find(sought)
        while at >= 0:
            end = at + len(sought)
            if begins(at) and end in whole and (ends(end) or not isinstance(term, WholeWord)):
                return True
            at = folded.find(sought, at + 1)
        return False

    return holds


@lru_cache(maxsize=1 << 14)  # a large glossary is looked through for each question
def _folded(text: str) -> str:
    return text.translate(_SAME).casefold()
