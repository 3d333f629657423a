"""Names of units, currencies, months and weekdays by language, from Unicode's CLDR (babel).

measures("de").unit("Wochen")  ─▶ Unit("minute", 10080)        two weeks are fourteen days
measures("en").unit("dollars") ─▶ Unit("AUD CAD ... USD")      any of them
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from babel import Locale, UnknownLocaleError
from babel.numbers import format_compact_decimal, get_currency_name, get_currency_symbol
from babel.units import format_unit

from prompts.loader import table

# CLDR's name of a unit -> its base unit, and the factor.
_UNITS: Mapping[str, tuple[str, Fraction]] = {
    "duration-second": ("minute", Fraction(1, 60)),
    "duration-minute": ("minute", Fraction(1)),
    "duration-hour": ("minute", Fraction(60)),
    "duration-day": ("minute", Fraction(60 * 24)),
    "duration-week": ("minute", Fraction(60 * 24 * 7)),
    "duration-month": ("month", Fraction(1)),
    "duration-year": ("month", Fraction(12)),
    "length-millimeter": ("metre", Fraction(1, 1000)),
    "length-centimeter": ("metre", Fraction(1, 100)),
    "length-meter": ("metre", Fraction(1)),
    "length-kilometer": ("metre", Fraction(1000)),
    "area-square-meter": ("square metre", Fraction(1)),
    "area-hectare": ("square metre", Fraction(10_000)),
    "area-square-kilometer": ("square metre", Fraction(1_000_000)),
    "volume-liter": ("litre", Fraction(1)),
    "volume-cubic-meter": ("litre", Fraction(1000)),
    "mass-gram": ("gram", Fraction(1)),
    "mass-kilogram": ("gram", Fraction(1000)),
    "mass-tonne": ("gram", Fraction(1_000_000)),
    "temperature-celsius": ("degree", Fraction(1)),
    "concentr-percent": ("percent", Fraction(1)),
}
# Currencies of countries with our languages; others are not recognized.
_CURRENCIES = (
    "AED ALL AUD BAM BGN BRL CAD CHF CNY CZK DKK EGP EUR GBP HUF ILS INR ISK JPY KRW MAD MDL MKD MXN NOK NZD PLN RON "
    "RSD RUB SAR SEK SYP THB TND TRY TWD UAH USD ZAR"
)
CURRENCIES = frozenset(_CURRENCIES.split())
_COUNTS = (1, 2, 3, 5)  # one number for each plural form in our languages
_LONG = 3  # least letters of a word with an additional ending
_ENDING = 2  # most letters of such an ending
_REGIONS = {"en": ("en", "en_GB")}  # for British spellings: metres, litres


@dataclass(frozen=True)
class MeasureUnit:
    """A unit as a multiple of its base unit; or one of several currencies."""

    base: frozenset[str]
    factor: Fraction = Fraction(1)


@dataclass(frozen=True)
class Measures:
    """The words of one language."""

    units: Mapping[str, MeasureUnit]
    scales: Mapping[str, int]  # thousand, million, ...
    months: Mapping[str, int]  # 1..12, in their own case
    months_short: Mapping[str, int]
    weekdays: Mapping[str, int]  # 0..6 from Monday, case folded
    weekdays_short: Mapping[str, int]  # in their own case
    numbers: Mapping[str, int]  # spelled ones

    def unit(self, word: str) -> MeasureUnit | None:
        """The unit of a word, also of an inflected form: `Monaten`."""
        if word in CURRENCIES:
            return MeasureUnit(frozenset([word]))
        folded = word.casefold().rstrip(".")
        for cut in range(min(_ENDING, len(folded) - _LONG) + 1 if len(folded) > _LONG else 1):
            found = self.units.get(folded[: len(folded) - cut])
            if found is not None:
                return found
        return None


@cache
def measures(lang: str) -> Measures:
    """The words of a language; English for an empty or unknown one."""
    primary = re.split("[-_]", lang)[0].lower()
    try:
        locale = Locale.parse(primary)
    except (UnknownLocaleError, ValueError):
        return measures("en")
    months = {name: n for kind in ("format", "stand-alone") for n, name in locale.months[kind]["wide"].items()}
    short = {name: n for kind in ("format", "stand-alone") for n, name in locale.months[kind]["abbreviated"].items()}
    days = {name: n for kind in ("format", "stand-alone") for n, name in locale.days[kind]["wide"].items()}
    brief = {
        name.rstrip("."): n
        for width in ("abbreviated", "short")
        for n, name in locale.days["format"].get(width, {}).items()
        if not name.isascii() or len(name) > 1
    }
    return Measures(
        units=dict(_units(primary)),
        scales=dict(_scales(primary, locale)),
        months=months,
        months_short={name.rstrip("."): n for name, n in short.items()},
        weekdays={name.casefold(): n for name, n in days.items()},
        weekdays_short=brief,
        numbers=dict(_numbers(primary)),
    )


def _numbers(primary: str) -> Iterator[tuple[str, int]]:
    for n, forms in enumerate(table("numbers").get(primary, "").split(), start=2):
        for form in forms.split("/"):
            yield form.replace("_", " "), n


def _units(primary: str) -> Iterator[tuple[str, MeasureUnit]]:
    for code, codes in _currency_words(primary).items():
        yield code, MeasureUnit(frozenset(codes))
    for name, (base, factor) in _UNITS.items():
        for locale in _REGIONS.get(primary, (primary,)):
            for count in _COUNTS:
                for length in ("long", "short"):
                    word = _without_number(format_unit(count, name, length=length, locale=locale))
                    if word:
                        yield word, MeasureUnit(frozenset([base]), factor)
    yield "%", MeasureUnit(frozenset(["percent"]))
    yield "€", MeasureUnit(frozenset(["EUR"]))


def _currency_words(primary: str) -> Mapping[str, set[str]]:
    """Currencies by word; one word may mean several: dollars."""
    found: dict[str, set[str]] = {}
    for code in sorted(CURRENCIES):
        names = {get_currency_name(code, count=count, locale=primary) for count in _COUNTS}
        heads = {word for name in names for word in (re.split(r"[\s-]", name)[-1], re.split(r"[\s-]", name)[0])}
        long = {word for word in heads if len(word) > _LONG or not word.isascii()}
        signs = {get_currency_symbol(code, locale=primary), get_currency_symbol(code, "en")} - {code}
        for word in names | long | signs:
            found.setdefault(word.casefold(), set()).add(code)
    return found


def _scales(primary: str, locale: Locale) -> Iterator[tuple[str, int]]:
    for power in (10**3, 10**6, 10**9):
        for count in _COUNTS:
            for format_type in ("long", "short"):
                if format_type not in locale.compact_decimal_formats:
                    continue
                said = format_compact_decimal(count * power, format_type=format_type, locale=primary)
                word = _without_number(said)
                if len(word) > 1:  # `5M` may be a size
                    yield word, power


def _without_number(said: str) -> str:
    return re.sub(r"[\d\u0660-\u0669\u200e\u200f\u061c]", "", said).strip(" \xa0\u202f").casefold().rstrip(".")
