"""What a word is, in any script: for counting a question's words and for comparing texts by their words.

Scripts written without spaces have no words to see without a dictionary: ICU has one for each of them, and icu4py is
ICU in a wheel (PyICU needs a compiler, the Unicode segmentation of uniseg knows no dictionaries). Stems are Snowball's
(PyStemmer, the same algorithms in C), of the language that the text is in; of compounds, those of their parts.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable
from functools import lru_cache

from icu4py.breakers import WordBreaker
from Stemmer import Stemmer

from text.compounds import parts
from text.folding import UNSEEN, fold, normalized

BEGINNING = "-"  # behind the first letters of a word, which no word has

# What `indexed` makes of a text, kept with every index. Counts up when pages are to be analysed anew.
ANALYSIS = "snowball-1"
STEM = 5  # letters, where there is no stemmer: cuts most endings and keeps most words apart (XQuAD)

_HAN_AND_KANA = (
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003134f"
)
_SOUTH_EAST_ASIAN = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
# Vowel signs and accents stand inside words but are not \w in Python; Indic blocks without their full stops.
_MARKS = "\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff"
_WORD = re.compile(
    f"(?P<unspaced>[{_HAN_AND_KANA}{_SOUTH_EAST_ASIAN}]+)"
    f"|(?:(?![{_HAN_AND_KANA}{_SOUTH_EAST_ASIAN}])[^\\W_][{_MARKS}]*)+"
    f"(?:['’](?:(?![{_HAN_AND_KANA}{_SOUTH_EAST_ASIAN}])[^\\W_][{_MARKS}]*)+)*"
)
_ROUGH = re.compile(r"\w+")
_APOSTROPHE = re.compile("['’]")
# All but ASCII's letters and digits, as blanks: most text is ASCII, and is cut a lot faster without an expression.
_ASCII_CUT = bytes(byte if chr(byte).isalnum() else ord(" ") for byte in range(128)).ljust(256)
_UNSPACED = re.compile(f"[{_HAN_AND_KANA}{_SOUTH_EAST_ASIAN}]")
_STRETCH = re.compile(f"(?P<han>[{_HAN_AND_KANA}]+)|[{_SOUTH_EAST_ASIAN}]+")
_HANGUL = re.compile("[\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3]")
_ARABIC = re.compile("[\u0620-\u064a\u066e-\u06d3]")
# What is written together with the word behind it: "and", "the", "in", "as", "to". Snowball takes off the article
# alone: keywords alone on XQuAD's Arabic pages, page@1 .939; .947 so.
_ARABIC_PREFIX = re.compile("^(?:[وف]?(?:[بك]?ال|لل)(?=[\u0620-\u064a]{2})|[وفبلك](?=[\u0620-\u064a]{4}))")
# Hebrew has no stemmer in Snowball. At most two of the letters that are words of their own ("and", "the", "in", "to",
# "as", "from", "that") before at least three others, and the plural's ending.
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
    """Of this thread: a stemmer works in a buffer of its own."""

    def __init__(self) -> None:
        self._of: dict[str, Stemmer] = {}

    def stem(self, word: str, lang: str) -> str:
        if lang not in self._of:
            self._of[lang] = Stemmer(_SNOWBALL[lang], 0)  # without its cache: `_stems` has one
        stemmed: str = self._of[lang].stemWord(word)
        return stemmed


_STEMMERS = _Stemmers()


def count_words(text: str) -> int:
    """Words in `text`."""
    return sum(
        len(_in_dictionary(match.group())) if match.lastgroup else 1 for match in _WORD.finditer(text.translate(UNSEEN))
    )


def count_roughly(text: str) -> int:
    """Words of a long text in a fifth of the time: one with an apostrophe counts as two."""
    return count_words(text) if _UNSPACED.search(text) else len(_ROUGH.findall(text))


def words(text: str) -> list[str]:
    """The words, case folded, in order, split at apostrophes; of scripts without spaces as ICU's dictionaries say."""
    return _cut(text, _in_dictionary)


def _cut(text: str, unspaced: Callable[[str], list[str]]) -> list[str]:
    if text.isascii():
        return text.lower().encode().translate(_ASCII_CUT).decode().split()
    found: list[str] = []
    for match in _WORD.finditer(text.translate(UNSEEN)):
        word = match.group().casefold()
        if match.lastgroup:
            found.extend(unspaced(word))
        else:
            found.extend(part for part in _APOSTROPHE.split(word) if part)
    return found


def stems(text: str, lang: str = "") -> list[str]:
    """What is the same in the forms of a word: of each word one or, of compounds, several.

    Args:
        lang: the text's, a tag. Without it, and where there is no stemmer, words are cut to their first letters, so
            that texts can be compared whose language nobody knows. What is compared is to be of one language.
    """
    return [stem for word in stems_of_words(text, lang) for stem in word]


def stems_of_words(text: str, lang: str = "") -> list[tuple[str, ...]]:
    """`stems`, word by word: as many for one language as for another."""
    spoken = lang.partition("-")[0].lower()
    plain = text if text.isascii() else normalized("NFKC", text)
    return [_stems(word, spoken) for word in _cut(plain, _comparable)]


def ready(langs: Iterable[str]) -> None:
    """Load the dictionaries of these languages, which takes a second or two: they are loaded when first needed."""
    for lang in langs:
        stems("dictionary", lang)


def indexed(text: str, lang: str) -> list[str]:
    """What an index holds of a page: its stems, and its words' first letters for questions in other languages."""
    return [*stems(text, lang), *(stem for word in _beginnings(text) for stem in word)]


def _beginnings(text: str) -> list[tuple[str, ...]]:
    """The words' first letters, marked as such."""
    return [tuple(stem + BEGINNING for stem in word) for word in stems_of_words(text)]


def readings(text: str, langs: Iterable[str], *, beginnings: bool = False) -> list[list[tuple[str, ...]]]:
    """What each distinct word of a question may be in an index, if the question is in one of these languages.

    Args:
        beginnings: the words' first letters as well: many a name and many a foreign word begins alike in two languages.
    """
    by_lang = [stems_of_words(text, lang) for lang in langs]
    if beginnings:
        by_lang.append(_beginnings(text))
    return [list(dict.fromkeys(each)) for each in dict.fromkeys(zip(*by_lang, strict=True))]


@lru_cache(maxsize=1 << 15)
def _stems(word: str, lang: str) -> tuple[str, ...]:
    if not word.isascii():
        if _HANGUL.match(word):
            # Particles are written together with the word before them, so words are compared by pairs of syllables.
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
        # The whole word as well: who asks for "Wirtshaus" does not ask for any house.
        return (fold(_STEMMERS.stem(word, lang)), *(fold(_STEMMERS.stem(part, lang)) for part in found))
    return (fold(_STEMMERS.stem(word, lang)),)


def _comparable(run: str) -> list[str]:
    """Chinese and Japanese in pairs of signs: dictionaries cut a word otherwise beside another, and pairs never do.

    Keywords alone on XQuAD's Chinese pages, page@1 .983; .975 with ICU's words. Thai is better by words (.970; .965).
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
    """The words of a stretch of a script without spaces."""
    if len(run) == 1:
        return [run] if run.isalnum() else []
    found = (run[start:end] for start, end in WordBreaker(run, "").segments())
    return [word for word in found if any(map(str.isalnum, word))]  # not the marks of a sentence's end
