"""What a word is, in any script: for counting a question's words and for comparing texts by their words.

Scripts written without spaces have no words to see without a dictionary. They are counted by their usual word
length and compared by pairs of characters.
"""

from __future__ import annotations

import re
import unicodedata
from math import ceil

STEM = 5  # letters: cuts most endings of the European languages and keeps most words apart (XQuAD)

_HAN_AND_KANA = (
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003134f"
)
_SOUTH_EAST_ASIAN = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
# Vowel signs and accents stand inside words but are not \w in Python; Indic blocks without their full stops.
_MARKS = "\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff"
_WORD = re.compile(
    f"(?P<han>[{_HAN_AND_KANA}]+)"
    f"|(?P<sea>[{_SOUTH_EAST_ASIAN}]+)"
    f"|(?:(?![{_HAN_AND_KANA}{_SOUTH_EAST_ASIAN}])[^\\W_][{_MARKS}]*)+"
    f"(?:['’](?:(?![{_HAN_AND_KANA}{_SOUTH_EAST_ASIAN}])[^\\W_][{_MARKS}]*)+)*"
)
_APOSTROPHE = re.compile("['’]")
# All but ASCII's letters and digits, as blanks: most text is ASCII, and is cut a lot faster without an expression.
_ASCII_CUT = bytes(byte if chr(byte).isalnum() else ord(" ") for byte in range(128)).ljust(256)
_ACCENT = re.compile("[\u0300-\u036f]")
_LETTERS_PER_WORD = {"han": 2, "sea": 4}


def count_words(text: str) -> int:
    """Words in `text`; for scripts without spaces an estimate from the number of characters."""
    return sum(
        ceil(len(match.group()) / _LETTERS_PER_WORD[match.lastgroup]) if match.lastgroup else 1
        for match in _WORD.finditer(text)
    )


def words(text: str) -> list[str]:
    """The words, case folded, in order, split at apostrophes; of scripts without spaces the pairs of characters."""
    if text.isascii():
        return text.lower().encode().translate(_ASCII_CUT).decode().split()
    found: list[str] = []
    for match in _WORD.finditer(text):
        word = match.group().casefold()
        if match.lastgroup and len(word) > 1:
            found.extend(word[i : i + 2] for i in range(len(word) - 1))
        else:
            found.extend(part for part in _APOSTROPHE.split(word) if part)
    return found


def stems(text: str) -> list[str]:
    """`words` without accents, cut to their first letters, so that most inflected forms are equal."""
    plain = text if text.isascii() else _ACCENT.sub("", unicodedata.normalize("NFKD", text))
    return [word[:STEM] for word in words(plain)]
