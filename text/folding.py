"""Spellings that are the same to who asks: without case, accents, vowel points, and signs that nobody sees."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

# Inside a word and not to be seen: soft hyphen, joiners, marks of direction, byte order mark, Arabic's long stroke.
UNSEEN = dict.fromkeys(map(ord, "\u00ad\u200c\u200d\u200e\u200f\u2060\ufeff\u0640"))
# Accents of Latin, Greek and Cyrillic letters, vowel points of Hebrew and Arabic.
_ACCENT = re.compile("[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u064b-\u065f\u0670]")
EXPANDED, SPARE = 3, 100  # so many times as long, and so many characters more, a text may become when it is normalized


def normalized(form: Literal["NFKC", "NFKD"], text: str) -> str:
    """Unicode's normal form. One sign may stand for eighteen: of a text of such signs, as much as of any other."""
    return unicodedata.normalize(form, text)[: EXPANDED * len(text) + SPARE]


def fold(text: str) -> str:
    """As it is compared. Letters that are made of several, like Korean's syllables, stay whole (NFC, not NFD)."""
    if text.isascii():
        return text.lower()
    apart = normalized("NFKD", text.translate(UNSEEN).casefold())
    return unicodedata.normalize("NFC", _ACCENT.sub("", apart))
