"""The words a compound is made of: "Personalausweisgebühr" is to be found by who asks for "Ausweis" or "Gebühr".

Compounds are split by the dictionaries of simplemma (MIT; pure Python, word forms with their lemmas, kept since 2021).
Of the other ways that were looked at, n-gram models (CharSplit) split words that are none, dictionaries of spell
checkers are GPL, and an index's own vocabulary would cut a page otherwise tomorrow than today.

A wrong split does little harm, since pages and questions are split alike. Keywords alone on XQuAD's German pages:
page@1 .938 with Snowball's stems of whole words, .961 of their parts (first five letters of whole words: .951).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import version

from text.folding import fold
from text.vocabulary import Vocabulary, kept

SHORTEST = 4  # letters of a part; of the last one less after a long one: "Bürgeramt", but not "Freitag"
SHORTEST_LAST, LONG_BEFORE = 3, 5
LONGEST = 14  # letters of a part that is looked up: longer words are compounds themselves, or derived
LONGEST_SPLIT = 60  # letters: nobody asks for more, and the work grows with the square
_OTHER = "-"  # before words that are no nouns
_COMPILED = 1  # counts up when `_marked` or `fold` changes: vocabularies outlive what made them


@dataclass(frozen=True)
class _Rules:
    """How a language joins words."""

    dictionary: str  # of simplemma, in which nouns are told by their capitals
    links: tuple[str, ...]  # letters between two parts, "" first
    linked: tuple[str, ...] = ()  # endings after which there is always an "s": Ordnungs|amt, not Ordnung|samt
    suffixes: tuple[str, ...] = ()  # words of their own that are endings more often: Wirt|schaft
    infinitives: tuple[str, ...] = ()  # endings of verbs, whose stem may come first: Schwimm|bad


_RULES: Mapping[str, _Rules] = {
    "de": _Rules(
        "de",
        ("", "s", "n", "es", "en", "er", "e"),
        linked=("ung", "heit", "keit", "schaft", "ion", "tat", "ling", "tum"),
        suffixes=("schaft", "tum", "heit", "keit", "mals", "teil", "teils"),
        infinitives=("en", "n"),
    ),
}


def parts(word: str, lang: str) -> tuple[str, ...]:
    """The words that `word` is made of, or itself alone. It is folded as by text.words, and so are they."""
    rules = _RULES.get(lang)
    if rules is None or not SHORTEST + SHORTEST_LAST <= len(word) <= LONGEST_SPLIT:
        return (word,)
    return _parts(word, lang) or (word,)


@lru_cache(maxsize=1 << 14)
def _parts(word: str, lang: str) -> tuple[str, ...]:
    """Empty if it is no compound."""
    rules = _RULES[lang]
    words = _vocabulary(lang)
    found: list[tuple[str, str]] = []
    for at in range(SHORTEST, len(word) - SHORTEST_LAST + 1):
        before, last = word[:at], word[at:]
        if len(last) < SHORTEST and at < LONG_BEFORE:
            break
        if len(last) > LONGEST or last in rules.suffixes or last not in words:
            continue
        first = _first(before, lang, words)
        if first:
            found.append((first, last))
    splits = [tuple(leaf for part in both for leaf in _parts(part, lang) or (part,)) for both in found]
    return min(splits, key=lambda split: (len(split), -min(map(len, split))), default=())


def _first(before: str, lang: str, words: Vocabulary) -> str:
    """The word that `before` is as the first part of a compound, without the letters that join; else empty."""
    rules = _RULES[lang]
    if before.endswith(rules.linked):
        return ""
    for link in rules.links:
        base = before.removesuffix(link)
        if len(base) < SHORTEST or not before.endswith(link):
            continue
        if (len(base) <= LONGEST and base in words) or _parts(base, lang):
            return base
    verbs = (before, *(before + ending for ending in rules.infinitives))
    return before if any(_OTHER + verb in words for verb in verbs) else ""


@cache
def _vocabulary(lang: str) -> Vocabulary:
    """Nouns, and other words behind a sign. Takes seconds where this user has never needed it before."""
    dictionary = _RULES[lang].dictionary
    return kept(f"{lang}-{_COMPILED}-{version('simplemma')}", lambda: _marked(dictionary))


def _marked(dictionary: str) -> Iterator[str]:
    # Not on top: most processes find all of this compiled.
    from simplemma.strategies.dictionaries.stream_dictionary_factory import StreamDictionaryFactory

    for word in StreamDictionaryFactory(cache_max_size=0).get_dictionary(dictionary):
        if SHORTEST_LAST <= len(word) <= LONGEST and word.isalpha():
            if word[0].isupper() and word[1:].islower():
                yield fold(word)
            elif word.islower():
                yield _OTHER + fold(word)
