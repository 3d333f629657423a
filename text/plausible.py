"""Detects gibberish: "asdkj qwpoe" cannot be words in any language.

By trigrams: `trigrams.txt` lists those of our stop words, and those in at least two names of countries, languages,
currencies, cities, months and days in many languages (Unicode's CLDR). `python -m bench.trigrams` makes it. Nearly all
words of real questions have at least two fifths of their trigrams in the list, and few random ones more than a third.
Words with an inner capital, fewer than four letters, or in a script without trigrams never count as gibberish: they may
be names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

from text.folding import normalized

LISTED = Path(__file__).with_name("trigrams.txt")
LEAST = 0.35  # least share of known trigrams in a text that is no gibberish
LEAST_ALONE = 0.2  # the same for a single word, which may be a name
LEAST_STRUCK = 0.8  # the same for a word of neighbouring keys
SHORTEST = 4  # letters
ROWS = ("qwertyuiop", "qwertzuiopü", "azertyuiop", "asdfghjklöä", "qsdfghjklm", "zxcvbnm", "yxcvbnm", "wxcvbn",
        "йцукенгшщзхъ", "фывапролджэ", "фівапролджє", "ячсмитьбю")  # fmt: skip

_ACCENT = re.compile("[\u0300-\u036f]")
LETTERS = re.compile("[a-zа-яёіїєґўђјљњћџѓќѕ]+")
_WORD = re.compile(r"[^\W\d_]+")


def gibberish(said: str) -> bool:
    """Whether a text is gibberish. False if it may be a number or a name, or has no word to judge.

    True for texts without letters and digits.
    """
    if not any(char.isalnum() for char in said):
        return True
    runs: list[float] = []
    words = 0
    for word in _WORD.findall(said):
        if word[1:] != word[1:].lower():
            continue  # an abbreviation
        plain = folded(word)
        if not LETTERS.fullmatch(plain):
            return False
        if len(plain) < SHORTEST:
            continue
        known, number = _known(plain), len(plain)
        if len(set(plain)) == 1 or (known <= LEAST_STRUCK and _struck(word.casefold())):
            known = 0.0
        runs += [known] * number
        words += 1
    return bool(runs) and sum(runs) / len(runs) < (LEAST if words > 1 else LEAST_ALONE)


def _known(word: str) -> float:
    found = list(runs_of(word))
    return sum(run in _trigrams() for run in found) / len(found)


def _struck(word: str) -> bool:
    """Whether each letter is at most two keys from the previous one, in one row of the keyboard."""
    return any(
        set(word) <= set(row) and all(abs(row.index(a) - row.index(b)) <= 2 for a, b in pairwise(word)) for row in ROWS
    )


def runs_of(word: str) -> Iterator[str]:
    edged = f" {word} "
    return (edged[i : i + 3] for i in range(len(edged) - 2))


def folded(word: str) -> str:
    return _ACCENT.sub("", normalized("NFKD", word.casefold())).translate(str.maketrans("łđøæ", "ldoa"))


@cache
def _trigrams() -> frozenset[str]:
    lines = LISTED.read_text(encoding="utf-8").splitlines()
    return frozenset(line[0] + line[i : i + 2] for line in lines for i in range(1, len(line), 2))
