"""Masks personal data in texts before they are stored, by replacing it with its kind.

    "Write to anna@example.org or 0171 2345678"  ─▶  "Write to [e-mail] or [phone]"

Found are e-mail addresses, phone numbers, bank accounts (IBAN, ISO 13616) and payment cards (ISO/IEC 7812). Names,
postal addresses, birthdays and file numbers are not: patterns cannot tell them from what a website is asked about, and
what can is a model of hundreds of megabytes. How much is found of what should be: `python -m bench masking`.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

from babel import Locale, UnknownLocaleError
from babel.core import get_global
from phonenumbers import (
    Leniency,
    PhoneNumber,
    PhoneNumberMatcher,
    PhoneNumberType,
    number_type,
)

Kind = Literal["e-mail", "phone", "iban", "card"]

# A practical subset of RFC 5322 before the @; after it, a domain with a top level.
_EMAIL = re.compile(
    r"(?<![\w.+-])[\w.!#$%&'*+/=?^`{|}~-]{1,64}\s?(?:@|\s?[\[(](?:at|ät|kukac|arobase)[\])]\s?|＠)\s?"
    r"(?:[\w](?:[\w-]{0,61}[\w])?\.)+[^\W\d_]{2,24}(?![\w-])",
    re.IGNORECASE,
)
# Two letters and two digits, then 11 to 30 letters and digits, with single spaces, dots or hyphens in between.
_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}[ .-]?\d{2}(?:[ .-]?[A-Z0-9]){11,30}", re.IGNORECASE)
_CARD = re.compile(r"(?<![\d.,/-])(?<!\d )\d(?:[ -]?\d){12,18}(?![\d])")
# First digits of the networks that issue payment cards.
_ISSUERS = re.compile(r"3[47]|3(?:0[0-5]|[689])|35|4|5[0-8]|2[2-7]|6")
# Numbers of offices and companies, not of persons.
_PUBLIC = frozenset(
    (
        PhoneNumberType.TOLL_FREE,
        PhoneNumberType.PREMIUM_RATE,
        PhoneNumberType.SHARED_COST,
        PhoneNumberType.UAN,
        PhoneNumberType.VOICEMAIL,
    )
)
# Numbers must be valid for their country, with the right length and an existing area code, since codes, amounts and
# times are digits as well.
_LENIENCY = Leniency.VALID
# No phone numbers: parts of longer numbers, three parts with slashes (048/815/08155), or a leading year (2026/04712).
_NUMBERED = re.compile(r"\d[/.]$")
_REFERENCE = re.compile(r"\d/\d+/\d|^(?:19|20)\d\d/")


@dataclass(frozen=True)
class Personal:
    """Personal data at `text[start:end]`."""

    kind: Kind
    start: int
    end: int


def masked(text: str, regions: Sequence[str], known: frozenset[str] = frozenset()) -> str:
    """The text with personal data replaced by its kind in brackets.

    Args:
        regions: countries (ISO 3166, `DE`) whose phone numbers are recognized without a country code.
        known: data that the site publishes itself, from `published`; it is not masked.
    """
    pieces, end = [], 0
    for found in personal(text, regions, known):
        pieces += [text[end : found.start], f"[{found.kind}]"]
        end = found.end
    return "".join([*pieces, text[end:]])


def is_masked(text: str) -> bool:
    """Whether something was replaced in the text, or it looks so."""
    return any(f"[{kind}]" in text for kind in get_args(Kind))


def personal(text: str, regions: Sequence[str], known: frozenset[str] = frozenset()) -> list[Personal]:
    """Personal data in the text's order, without overlaps."""
    plain = _ascii_digits(text)
    taken: list[Personal] = []
    for found in (*_emails(plain, known), *_ibans(plain), *_cards(plain), *_phones(plain, regions, known)):
        at = bisect_left(taken, found.start, key=lambda one: one.start)
        before, behind = taken[at - 1 : at], taken[at : at + 1]
        if all(one.end <= found.start for one in before) and all(found.end <= one.start for one in behind):
            taken.insert(at, found)
    return taken


def published(texts: Iterable[str], regions: Sequence[str]) -> frozenset[str]:
    """E-mail addresses and phone numbers in the site's own texts, which are public and often asked for."""
    found: set[str] = set()
    for text in texts:
        found.update(_address(match.group()) for match in _EMAIL.finditer(text))
        for region in regions:
            found.update(_number(match.number) for match in PhoneNumberMatcher(text, region, Leniency.POSSIBLE))
    return frozenset(found)


@cache
def regions_of(timezone: str, languages: tuple[str, ...]) -> tuple[str, ...]:
    """The countries of visitors' phone numbers: that of the site's time zone, or else those of its languages."""
    if place := get_global("zone_territories").get(timezone):
        return (str(place),)
    return tuple(dict.fromkeys(region for lang in languages if (region := _home(lang))))


def _home(lang: str) -> str:
    likely = str(get_global("likely_subtags").get(lang.partition("-")[0], "")).rpartition("_")[2]
    try:
        return str(Locale.parse(lang, sep="-").territory or likely)
    except (UnknownLocaleError, ValueError):
        return likely


def _ascii_digits(text: str) -> str:
    """The text with ASCII digits and plain spaces. Offsets do not change."""
    return "".join(
        str(unicodedata.digit(char))
        if char.isdigit() and not char.isascii() and unicodedata.decimal(char, None) is not None
        else " "
        if char.isspace() and char != "\n"
        else char
        for char in text
    )


def _emails(text: str, known: frozenset[str]) -> Iterator[Personal]:
    for match in _EMAIL.finditer(text):
        if _address(match.group()) not in known:
            yield Personal("e-mail", match.start(), match.end())


def _address(written: str) -> str:
    return re.sub(r"\s", "", written).casefold()


def _ibans(text: str) -> Iterator[Personal]:
    for match in _IBAN.finditer(text):
        # Following words may look like a part of it, so take the longest one with valid check digits.
        for end in range(match.end(), match.start() + 14, -1):
            written = text[match.start() : end]
            bare = re.sub(r"[ .-]", "", written).upper()
            if len(bare) >= 15 and written[-1].isalnum() and not text[end : end + 1].isalnum() and _is_iban(bare):
                yield Personal("iban", match.start(), end)
                break


def _is_iban(bare: str) -> bool:
    """ISO 7064, MOD 97-10."""
    turned = bare[4:] + bare[:4]
    return int("".join(str(int(char, 36)) for char in turned)) % 97 == 1


def _cards(text: str) -> Iterator[Personal]:
    for match in _CARD.finditer(text):
        digits = re.sub(r"\D", "", match.group())
        if _ISSUERS.match(digits) and len(set(digits)) > 1 and _luhn(digits):
            yield Personal("card", match.start(), match.end())


def _luhn(digits: str) -> bool:
    """ISO/IEC 7812-1, annex B."""
    doubled = [int(digit) * 2 for digit in digits[-2::-2]]
    return (sum(map(int, digits[-1::-2])) + sum(two - 9 if two > 9 else two for two in doubled)) % 10 == 0


def _phones(text: str, regions: Sequence[str], known: frozenset[str]) -> Iterator[Personal]:
    for region in regions or ("ZZ",):  # ZZ: only numbers with a country code
        for match in PhoneNumberMatcher(text, region, _LENIENCY):
            number = match.number
            if _NUMBERED.search(text[: match.start]) or _REFERENCE.search(match.raw_string):
                continue
            if number_type(number) not in _PUBLIC and _number(number) not in known:
                yield Personal("phone", match.start, match.end)


def _number(number: PhoneNumber) -> str:
    return f"+{number.country_code}{number.national_number}"
