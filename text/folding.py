"""Folds spellings for comparison: removes case, accents, vowel points and invisible characters."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

# Invisible inside words: soft hyphen, joiners, direction marks, byte order mark, Arabic tatweel.
INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u200c\u200d\u200e\u200f\u2060\ufeff\u0640"))
# Accents of Latin, Greek and Cyrillic letters, vowel points of Hebrew and Arabic.
_ACCENT = re.compile("[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u064b-\u065f\u0670]")
EXPANDED, SPARE = 3, 100  # factor and constant (characters) by which a normalized text may be longer


def normalized(form: Literal["NFKC", "NFKD"], text: str) -> str:
    """Unicode's normal form, cut to a bounded length, since one character may expand to eighteen."""
    return unicodedata.normalize(form, text)[: EXPANDED * len(text) + SPARE]


def fold(text: str) -> str:
    """The folded text. Composed letters such as Korean syllables stay whole (NFC, not NFD)."""
    if text.isascii():
        return text.lower()
    apart = normalized("NFKD", text.translate(INVISIBLE).casefold())
    return unicodedata.normalize("NFC", _ACCENT.sub("", apart))
