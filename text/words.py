"""Splits text into words and stems, in any script, to count words and to compare texts.

Scripts without spaces need dictionaries: ICU has them, and icu4py is ICU as a wheel (PyICU needs a compiler, uniseg has
no dictionaries). Stems are Snowball's (PyStemmer) for the text's language; compounds are stemmed part by part.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import chain

from icu4py.breakers import WordBreaker
from Stemmer import Stemmer

from text.compounds import parts
from text.folding import INVISIBLE, fold, normalized

BEGINNING = "-"  # marks the first letters of a word; no word contains it

# The version of `indexed`, stored with every index. Increment when pages must be analysed again.
ANALYSIS = "snowball-1"
STEM = 5  # letters of a stem without a stemmer: cuts most endings and distinguishes most words (XQuAD)

_HAN_AND_KANA = (
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003134f"
)
_SOUTH_EAST_ASIAN = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
# Vowel signs and accents inside words, which are not \w in Python; Indic blocks without their full stops.
_MARKS = "\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff"
_WORD = re.compile(
    f"(?P<unspaced>[{_HAN_AND_KANA}{_SOUTH_EAST_ASIAN}]+)"
    f"|(?:(?![{_HAN_AND_KANA}{_SOUTH_EAST_ASIAN}])[^\\W_][{_MARKS}]*)+"
    f"(?:['’](?:(?![{_HAN_AND_KANA}{_SOUTH_EAST_ASIAN}])[^\\W_][{_MARKS}]*)+)*"
)
_ROUGH = re.compile(r"\w+")
_APOSTROPHE = re.compile("['’]")
_NO_APOSTROPHE = re.compile("[^'’]+")
# Replaces all but ASCII letters and digits with blanks: for ASCII text this is much faster than a regular expression.
_ASCII_CUT = bytes(byte if chr(byte).isalnum() else ord(" ") for byte in range(128)).ljust(256)
_UNSPACED = re.compile(f"[{_HAN_AND_KANA}{_SOUTH_EAST_ASIAN}]")
# Without these characters, a word is a run of letters and digits, which is found five times as fast.
_UNUSUAL = re.compile(f"[{_HAN_AND_KANA}{_SOUTH_EAST_ASIAN}{_MARKS}{''.join(map(chr, INVISIBLE))}]")
_PLAIN = re.compile(r"[^\W_]+")
_STRETCH = re.compile(f"(?P<han>[{_HAN_AND_KANA}]+)|[{_SOUTH_EAST_ASIAN}]+")
_HANGUL = re.compile("[\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3]")
_ARABIC = re.compile("[\u0620-\u064a\u066e-\u06d3]")
# Prefixes that are joined to words: "and", "the", "in", "as", "to". Snowball only removes the article: keywords alone
# on XQuAD's Arabic pages have page@1 .939, and .947 with this.
_ARABIC_PREFIX = re.compile("^(?:[وف]?(?:[بك]?ال|لل)(?=[\u0620-\u064a]{2})|[وفبلك](?=[\u0620-\u064a]{4}))")
# Snowball has no Hebrew stemmer. Removes at most two prefixed letters ("and", "the", "in", "to", "as", "from", "that")
# before at least three others, and endings.
_HEBREW = re.compile("[\u05d0-\u05ea]+")
_HEBREW_PREFIX = re.compile("^[והבלכמש]{1,2}(?=[\u05d0-\u05ea]{3})")
_HEBREW_ENDING = re.compile("(?<=[\u05d0-\u05ea]{3})(?:ים|ות|ה|י)$")

_SNOWBALL = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek", "en": "english",
    "es": "spanish", "et": "estonian", "eu": "basque", "fa": "persian", "fi": "finnish", "fr": "french", "ga": "irish",
    "hi": "hindi", "hu": "hungarian", "hy": "armenian", "id": "indonesian", "it": "italian", "lt": "lithuanian",
    "nb": "norwegian", "ne": "nepali", "nl": "dutch", "nn": "norwegian", "no": "norwegian", "pl": "polish",
    "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian", "sv": "swedish", "ta": "tamil",
    "tr": "turkish", "yi": "yiddish",
}  # fmt: skip
_IN_OTHER_ARABIC_LETTERS = frozenset(("fa", "ps", "ku", "ckb", "sd", "ug", "ur"))


class _Stemmers(threading.local):
    """Stemmers by thread, since they are not thread-safe."""

    def __init__(self) -> None:
        self._of: dict[str, Stemmer] = {}

    def stem(self, word: str, lang: str) -> str:
        if lang not in self._of:
            self._of[lang] = Stemmer(_SNOWBALL[lang], 0)  # without its cache, since `_stems` is cached
        stemmed: str = self._of[lang].stemWord(word)
        return stemmed


_STEMMERS = _Stemmers()


def count_words(text: str) -> int:
    return sum(
        len(_in_dictionary(match.group())) if match.lastgroup else 1
        for match in _WORD.finditer(text.translate(INVISIBLE))
    )


def count_roughly(text: str) -> int:
    """Words of a long text in a fifth of the time: one with an apostrophe counts as two."""
    return count_words(text) if _UNSPACED.search(text) else len(_ROUGH.findall(text))


def words(text: str) -> list[str]:
    """The case-folded words in order, split at apostrophes; by ICU's dictionaries in scripts without spaces."""
    return _cut(text, _in_dictionary)


def word_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where each of the `words` begins and ends. One with an invisible character inside is two."""
    for match in _WORD.finditer(text):
        cut = _dictionary_spans(match.group()) if match.lastgroup else _between_apostrophes(match.group())
        for start, end in cut:
            yield match.start() + start, match.start() + end


def _between_apostrophes(run: str) -> Iterator[tuple[int, int]]:
    return (part.span() for part in _NO_APOSTROPHE.finditer(run))


def _cut(text: str, unspaced: Callable[[str], list[str]]) -> list[str]:
    if text.isascii():
        return text.lower().encode().translate(_ASCII_CUT).decode().split()
    if not _UNUSUAL.search(text):
        return "\n".join(_PLAIN.findall(text)).casefold().split()
    found: list[str] = []
    for match in _WORD.finditer(text.translate(INVISIBLE)):
        word = match.group().casefold()
        if match.lastgroup:
            found.extend(unspaced(word))
        else:
            found.extend(part for part in _APOSTROPHE.split(word) if part)
    return found


def stems(text: str, lang: str = "") -> list[str]:
    """The stems of a text's words; compounds have several.

    Args:
        lang: the text's language tag. Without it, or without a stemmer, stems are the words' first letters, so that
            texts of an unknown language can be compared. Compared texts must have the same `lang`.
    """
    return [stem for word in stems_of_words(text, lang) for stem in word]


def stems_of_words(text: str, lang: str = "") -> list[tuple[str, ...]]:
    """`stems` by word. The number of words does not depend on `lang`."""
    spoken = lang.partition("-")[0].lower()
    return [_stems(word, spoken) for word in _comparable_words(text)]


def _comparable_words(text: str) -> list[str]:
    return _cut(text if text.isascii() else normalized("NFKC", text), _comparable)


def ready(langs: Iterable[str]) -> None:
    """Load the dictionaries of these languages, which takes a second or two, before their first use."""
    for lang in langs:
        stems("dictionary", lang)


def indexed(text: str, lang: str) -> list[str]:
    """A page's terms in an index: its stems, and its words' first letters for questions in other languages."""
    spoken, said = lang.partition("-")[0].lower(), _comparable_words(text)
    return [*chain.from_iterable(_stems(word, spoken) for word in said), *chain.from_iterable(map(_beginning, said))]


@lru_cache(maxsize=1 << 15)
def _beginning(word: str) -> tuple[str, ...]:
    """The word's first letters, marked with `BEGINNING`."""
    return tuple(stem + BEGINNING for stem in _stems(word, ""))


def readings(text: str, langs: Iterable[str], *, beginnings: bool = False) -> list[list[tuple[str, ...]]]:
    """The possible terms in an index for each distinct word of a question, by these languages.

    Args:
        beginnings: add the words' first letters, since names and foreign words begin alike in many languages.
    """
    by_lang = [stems_of_words(text, lang) for lang in langs]
    if beginnings:
        by_lang.append([*map(_beginning, _comparable_words(text))])
    return [list(dict.fromkeys(each)) for each in dict.fromkeys(zip(*by_lang, strict=True))]


@lru_cache(maxsize=1 << 15)
def _stems(word: str, lang: str) -> tuple[str, ...]:
    if not word.isascii():
        if _HANGUL.match(word):
            # Korean particles are joined to words, so words are compared by pairs of syllables.
            plain = fold(word)
            return tuple(plain[i : i + 2] for i in range(len(plain) - 1)) or (plain,)
        if _UNSPACED.match(word):
            return (fold(word),)
        if _HEBREW.match(word):
            return (_HEBREW_ENDING.sub("", _HEBREW_PREFIX.sub("", fold(word))),)
        if _ARABIC.match(word) and lang not in _IN_OTHER_ARABIC_LETTERS:
            word, lang = _ARABIC_PREFIX.sub("", fold(word)), "ar"
    if word.isdecimal():
        return (word,)
    if lang not in _SNOWBALL:
        return (fold(word)[:STEM],)
    found = parts(fold(word), lang)
    if len(found) > 1:
        # The whole word as well, so that "Wirtshaus" matches better than any "Haus".
        return (fold(_STEMMERS.stem(word, lang)), *(fold(_STEMMERS.stem(part, lang)) for part in found))
    return (fold(_STEMMERS.stem(word, lang)),)


def _comparable(run: str) -> list[str]:
    """Pairs of Chinese and Japanese characters. Dictionaries may split the same word differently, depending on others.

    Keywords alone on XQuAD's Chinese pages have page@1 .983, and .975 with ICU's words. Thai: .965; .970.
    """
    found: list[str] = []
    for stretch in _STRETCH.finditer(run):
        signs = stretch.group()
        if stretch["han"] and len(signs) > 1:
            found.extend(signs[i : i + 2] for i in range(len(signs) - 1))
        else:
            found.extend(_in_dictionary(signs))
    return found


def _in_dictionary(run: str) -> list[str]:
    """The words of a run in a script without spaces."""
    return [run[start:end] for start, end in _dictionary_spans(run)]


def _dictionary_spans(run: str) -> Iterator[tuple[int, int]]:
    """Where the words of such a run begin and end, without punctuation."""
    cut = WordBreaker(run, "").segments() if len(run) > 1 else [(0, 1)]
    return ((start, end) for start, end in cut if any(map(str.isalnum, run[start:end])))
