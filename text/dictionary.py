"""Dictionaries: whether a word belongs to a language, to tell misspelled words from words that no page has.

The word forms of simplemma, as in text.compounds. A language is added here after its errors have been measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.metadata import version

from text.compounds import DICTIONARY, is_word
from text.folding import fold
from text.vocabulary import Vocabulary, kept

ENGLISH = "en"
DICTIONARIES = frozenset((DICTIONARY, ENGLISH))  # of simplemma; the image keeps these files alone
_COMPILED = 1  # version of the cached vocabulary; increment when `_forms` or `fold` changes


def in_dictionary(word: str) -> bool:
    """Whether one of the dictionaries has the word, or the parts of a compound."""
    folded = fold(word)
    return folded in _english() or is_word(folded)


@cache
def _english() -> Vocabulary:
    """English words. Takes a second at a user's first call."""
    return kept(f"{ENGLISH}-{_COMPILED}-{version('simplemma')}", _forms)


def _forms() -> Iterator[str]:
    # Imported here, since most processes use the cached vocabulary.
    from simplemma.strategies.dictionaries.stream_dictionary_factory import StreamDictionaryFactory

    return (fold(word) for word in StreamDictionaryFactory(cache_max_size=0).get_dictionary(ENGLISH) if word.isalpha())
