"""Superscripts and subscripts as plain text, separate from numbers: 7<sup>50</sup> € is not 750 €.

7<sup>50</sup> €  ─▶ 7,50 €       m<sup>2</sup>, 1<sup>st</sup>, CO<sub>2</sub>  ─▶ m2, 1st, CO2
10<sup>6</sup>    ─▶ 10^6         twelve euros<sup>1</sup>, €12<sup>1</sup>      ─▶ twelve euros, €12
"""

from __future__ import annotations

import re
from functools import lru_cache
from unicodedata import normalize

from babel import Locale, UnknownLocaleError

NEAR = 24  # characters of context on each side

_CENTS = re.compile(r"\d\d(?=\D*$)")
_WHOLE = re.compile(r"(?<![\d.,'’])\d{1,4}$")
_MONEY = re.compile(
    r"[€$£¥₹₺₴₪฿₽]|\b(?:EUR|CHF|USD|GBP|PLN|CZK|HUF|RON|SEK|NOK|DKK|Fr|euros?|zł|Kč|Ft|lei|kr)\b", re.IGNORECASE
)
_MARK = re.compile(r"\d{1,3}(?:\s*[,;]\s*\d{1,3})*[)*]?")  # of a note, or an exponent
_SIGNED = re.compile(r"[-−–+]\d+|\d+[-−–+]")
_UNIT = re.compile(r"(?<![^\W\d_])(?:[cdkmnµμ]?m|ft|in|yd|mi)$")
_WORD = re.compile(r"[^\W\d_]{4}$")
_AMOUNT = re.compile(r"(?:[€$£¥₹₺₴₪฿₽]|\b(?:EUR|CHF|USD|GBP))\s?(?!10$)\d[\d.,'’]*$")  # 10 has powers
_NO_CENTS = re.compile("[-–—−]{1,2}")
_RAISED = re.compile("[⁰¹²³⁴-⁹]{1,3}")
_FRACTION = ("/", "⁄")


@lru_cache(maxsize=1 << 10)
def decimal_sign(lang: str) -> str:
    """The sign between euros and cents in a language; a point if it is unknown."""
    try:
        return str(Locale.parse(lang, sep="-").number_symbols["latn"]["decimal"])
    except (ValueError, UnknownLocaleError, KeyError):
        return "."


def raised(before: str, text: str, after: str, decimal: str = ".") -> str:
    """The plain text of a superscript between these texts, with this sign before the cents of a price."""
    text = text.strip()
    if _RAISED.fullmatch(text):  # raised twice; it is left out where a figure would be
        return text if raised(before, normalize("NFKC", text), after, decimal) else ""
    if cents := _cents(before, text, after, decimal):
        return cents
    if text[:1].isdigit() and after.startswith(_FRACTION):
        return _apart(before, text, "")
    if _MARK.fullmatch(text) and _AMOUNT.search(before):
        return ""  # the number of a note
    if not text or (_MARK.fullmatch(text) is None and _SIGNED.fullmatch(text) is None):
        return _joined(before, text, after, "^")
    if _MARK.fullmatch(text) and not before.strip():
        return f"({text.rstrip(')*')})" + " " * (not after.startswith(" "))  # the number of a note at its beginning
    last = before[-1:]
    if not (last.isalnum() or last == ")") or (_WORD.search(before) and not _SIGNED.fullmatch(text)):
        return ""
    return _joined(before, text, after, "" if _UNIT.search(before) and text in ("2", "3") else "^")


def small(before: str, text: str, after: str, decimal: str = ".") -> str:
    """The plain text of small print directly behind a figure: the cents of a price, or something else."""
    figures = before[-1:].isdigit() and text[:1].isdigit()
    return _cents(before, text.strip(), after, decimal) or " " * figures + text


def lowered(before: str, text: str, after: str, decimal: str = ".") -> str:
    """The plain text of a subscript between these texts."""
    text = text.strip()
    return _cents(before, text, after, decimal) or _joined(before, text, after, "_")


def _cents(before: str, text: str, after: str, decimal: str) -> str:
    """The cents of a price after the decimal sign; empty: it is no price."""
    cents = _CENTS.match(text) or _NO_CENTS.fullmatch(text)
    if cents and re.search(r"\d[.,]$", before):
        return text
    whole = _WHOLE.search(before)
    if cents is None or whole is None:
        return ""
    behind = text[cents.end() :] + after
    near = _MONEY.match(behind.lstrip()) or _MONEY.search(before, max(0, whole.start() - 5), whole.start())
    return f"{decimal}{text}" if near else ""


def _joined(before: str, text: str, after: str, mark: str) -> str:
    """The text with the mark between numbers, and before a signed power; separate from a following number."""
    figures = before[-1:].isdigit() and text[:1].isdigit()
    raised_figure = mark == "^" and bool(text) and (text[0] in "-−–+" or text[0].isdigit())
    return (mark if figures or raised_figure else "") + _apart("", text, after)


def _apart(before: str, text: str, after: str) -> str:
    space = " " if before[-1:].isdigit() else ""
    return space + text + (" " if text[-1:].isdigit() and after[:1].isdigit() else "")
