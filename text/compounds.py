"""Splits compounds into words, so that "Ausweis" and "Gebühr" find "Personalausweisgebühr".

Uses the dictionaries of simplemma (MIT; pure Python, word forms with lemmas, maintained since 2021). Rejected
alternatives: n-gram models (CharSplit) split words that are no compounds, spell checkers' dictionaries are GPL, and an
index's own vocabulary would change the splits over time.

A wrong split does little harm, since pages and questions are split the same way. Keywords alone on XQuAD's German
pages: page@1 .938 with Snowball's stems of whole words, .961 with stems of parts (first five letters of words: .951).

The same dictionaries restore umlauts that were typed without their keys: "Sperrmuell" is "Sperrmüll". Only what they
know with the umlaut, and do not know without it, is changed ("Steuer", "Poet").
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib.metadata import version
from itertools import product

from text.folding import fold
from text.vocabulary import Vocabulary, kept

SHORTEST = 4  # letters of a part; the last one may be shorter after a long one: "Bürgeramt", but not "Freitag"
SHORTEST_LAST, LONG_BEFORE = 3, 5
LONGEST = 14  # letters of a part; longer words are compounds themselves, or derived
LONGEST_SPLIT = 60  # letters of a compound, since the time is quadratic
_OTHER = "-"  # prefix of words that are no nouns
_COMPILED = 1  # version of the cached vocabularies; increment when `_marked` or `fold` changes


DICTIONARY = "de"  # of simplemma, and the one language that is split; nouns have capitals
_LINKS = ("", "s", "n", "es", "en", "er", "e")  # letters between two parts
# Endings that are always followed by an "s": Ordnungs|amt, not Ordnung|samt.
_LINKED = ("ung", "heit", "keit", "schaft", "ion", "tat", "ling", "tum")
_SUFFIXES = ("schaft", "tum", "heit", "keit", "mals", "teil", "teils")  # more often suffixes than words: Wirt|schaft
_INFINITIVES = ("en", "n")  # endings of verbs, whose stem may be the first part: Schwimm|bad


def parts(word: str, lang: str) -> tuple[str, ...]:
    """The parts of `word`, or only itself if it is no compound. Word and parts are folded as in text.words."""
    if lang != DICTIONARY or not SHORTEST + SHORTEST_LAST <= len(word) <= LONGEST_SPLIT:
        return (word,)
    return _parts(word) or (word,)


def is_word(word: str) -> bool:
    """Whether the dictionary has a word, or the parts of a compound. The word is folded as in text.words."""
    words = _vocabulary()
    return len(word) <= LONGEST_SPLIT and (word in words or _OTHER + word in words or bool(_parts(word)))


@lru_cache(maxsize=1 << 14)
def _parts(word: str) -> tuple[str, ...]:
    """The parts; empty if the word is no compound."""
    words = _vocabulary()
    found: list[tuple[str, str]] = []
    for at in range(SHORTEST, len(word) - SHORTEST_LAST + 1):
        before, last = word[:at], word[at:]
        if len(last) < SHORTEST and at < LONG_BEFORE:
            break
        if len(last) > LONGEST or last in _SUFFIXES or last not in words:
            continue
        first = _first(before, words)
        if first:
            found.append((first, last))
    splits = [tuple(leaf for part in both for leaf in _parts(part) or (part,)) for both in found]
    return min(splits, key=lambda split: (len(split), -min(map(len, split))), default=())


def _first(before: str, words: Vocabulary) -> str:
    """The word in `before`, the first part of a compound, without linking letters; empty if it is no word."""
    if before.endswith(_LINKED):
        return ""
    for link in _LINKS:
        base = before.removesuffix(link)
        if len(base) < SHORTEST or not before.endswith(link):
            continue
        if (len(base) <= LONGEST and base in words) or _parts(base):
            return base
    verbs = (before, *(before + ending for ending in _INFINITIVES))
    return before if any(_OTHER + verb in words for verb in verbs) else ""


@cache
def _vocabulary() -> Vocabulary:
    """Nouns, and other words with a prefix. Takes seconds at a user's first call."""
    return kept(f"{DICTIONARY}-{_COMPILED}-{version('simplemma')}", _marked)


def _marked() -> Iterator[str]:
    # Imported here, since most processes use the cached vocabulary.
    from simplemma.strategies.dictionaries.stream_dictionary_factory import StreamDictionaryFactory

    for word in StreamDictionaryFactory(cache_max_size=0).get_dictionary(DICTIONARY):
        if SHORTEST_LAST <= len(word) <= LONGEST and word.isalpha():
            if word[0].isupper() and word[1:].islower():
                yield fold(word)
            elif word.islower():
                yield _OTHER + fold(word)


MOST = 3  # places in a word that are tried; each doubles the number of spellings
_PLACES = re.compile("ae|oe|ue", re.IGNORECASE)
_LETTERS = {"ae": "ä", "oe": "ö", "ue": "ü"}
_WORD = re.compile(r"[^\W\d_]+")


def with_umlauts(text: str, lang: str) -> str:
    """`text` with the umlauts that German words in it lack; other languages as they are."""
    if lang.partition("-")[0] != DICTIONARY:
        return text
    return _WORD.sub(lambda word: _spelled(word[0]), text)


def _spelled(word: str) -> str:
    places = list(_PLACES.finditer(word))
    if not 0 < len(places) <= MOST or is_word(fold(word)):
        return word
    for changed in product((True, False), repeat=len(places)):
        spelling = word
        for place, change in reversed(list(zip(places, changed, strict=True))):
            if change:
                spelling = spelling[: place.start()] + _LETTERS[place[0].lower()] + spelling[place.end() :]
        if is_word(fold(spelling)):
            return spelling
    return word
