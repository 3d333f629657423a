"""Writes umlauts where a keyboard without them was used: "Sperrmuell" is "Sperrmüll".

German spells ä, ö and ü as ae, oe and ue where they are missing. (ß and ss are folded to one spelling.) Other words
have these letters, too ("Steuer", "Poet"): only what the dictionary knows with the umlaut, and does not know without
it, is changed.
"""

from __future__ import annotations

import re
from itertools import product

from text.compounds import is_word
from text.folding import fold

MOST = 3  # places in a word that are tried; each doubles the number of spellings
_PLACES = re.compile("ae|oe|ue", re.IGNORECASE)
_LETTERS = {"ae": "ä", "oe": "ö", "ue": "ü"}
_WORD = re.compile(r"[^\W\d_]+")


def with_umlauts(text: str, lang: str) -> str:
    """`text` with the umlauts that German words in it lack; other languages as they are."""
    if lang.partition("-")[0] != "de":
        return text
    return _WORD.sub(lambda word: _spelled(word[0]), text)


def _spelled(word: str) -> str:
    places = list(_PLACES.finditer(word))
    if not 0 < len(places) <= MOST or is_word(fold(word), "de"):
        return word
    for changed in product((True, False), repeat=len(places)):
        spelling = word
        for place, change in reversed(list(zip(places, changed, strict=True))):
            if change:
                spelling = spelling[: place.start()] + _LETTERS[place[0].lower()] + spelling[place.end() :]
        if is_word(fold(spelling), "de"):
            return spelling
    return word
