"""Tells the words of a language from names: "Nextcloud" and "pipx" are in no dictionary, "boss" and "brummt" are.

Uses the word forms of simplemma, as text.compounds does. A dictionary is loaded when its language is made ready, since
the first time takes seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.metadata import version

from text.folding import fold
from text.vocabulary import Vocabulary, kept

_CAPITAL = "^"  # before words that have one
_COMPILED = 1  # version of the cached dictionaries; increment when `_forms` or `fold` changes
_loaded: dict[str, Vocabulary] = {}


def ready(langs: Iterable[str]) -> None:
    """Load the dictionaries of these languages, as far as there are any. Takes seconds at a user's first call."""
    for lang in {tag.partition("-")[0].lower() for tag in langs} - _loaded.keys():
        name = f"forms-{lang}-{_COMPILED}-{version('simplemma')}"
        try:
            _loaded[lang] = kept(name, lambda lang=lang: _forms(lang))  # type: ignore[misc]
        except ValueError:  # there is none
            continue


def loaded(lang: str) -> bool:
    """Whether the language's dictionary is here."""
    return lang in _loaded


def is_word(word: str, *, capital: bool = False) -> bool:
    """Whether a word is in one of the dictionaries that are here.

    Args:
        capital: only as one that is written with a capital: "Christmas", but not "Elixir".
    """
    forms = (_CAPITAL + fold(word),) if capital else (fold(word), _CAPITAL + fold(word))
    return any(form in vocabulary for vocabulary in _loaded.values() for form in forms)


def _forms(lang: str) -> Iterator[str]:
    # Imported here, since most processes use the cached dictionary.
    from simplemma.strategies.dictionaries.stream_dictionary_factory import StreamDictionaryFactory

    for form in StreamDictionaryFactory(cache_max_size=0).get_dictionary(lang):
        if form.islower():
            yield fold(form)
        elif form.istitle():  # "iPhone" is neither: a name, however it is written
            yield _CAPITAL + fold(form)
