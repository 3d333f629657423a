"""Formats a cell's value as the spreadsheet shows it: 0.25 with `0%` is "25%" (ECMA-376-1, 18.8.31).

Numbers have a decimal point and no thousands separators, since those depend on the author's system, which a file does
not name. Formats that depend on a language are replaced: dates by ISO 8601, fractions and scientific notation by plain
numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import lru_cache

MIDNIGHT = time()
LONGEST_FORMAT = 255  # characters, as Excel allows
MOST_DECIMALS = 30
# Literals: quoted, behind a backslash, in brackets (a currency, a colour, a condition); `_x` is as wide as an x, `*x`
# fills the cell.
_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"?|\\(?P<escaped>.)|\[\$(?P<currency>[^\]-]*)[^\]]*\]?|(?P<bracket>\[[^\]]*\]?)|(?P<wide>_).'
    r"|(?P<fill>\*).|(?P<end>;)|(?P<digits>[#0?](?:[#0?,.]*[#0?.,])?)|(?P<other>.)",
    re.DOTALL,
)
_CONDITION = re.compile(r"\[\s*[<>=]")
_DATE_PART = re.compile(
    r"(?P<literal>\"[^\"]*\"?|\\.|\[[^\]]*\]?|_.|\*.)|AM/PM|A/P|(?P<part>([ymdhs])\3*)|.", re.I | re.S
)
_SYSTEM_DATE = re.compile(r"mm-dd-yy|m/d/yy h:mm|.*\[\$-F[48]00\]", re.IGNORECASE)  # depends on the reader's system
_NUMBER = Context(prec=15)  # the precision of spreadsheets
_PARTS: dict[str, Callable[[datetime], str]] = {
    "yy": lambda at: f"{at.year % 100:02}",
    "yyyy": lambda at: f"{at.year:04}",
    "m": lambda at: str(at.month),
    "mm": lambda at: f"{at.month:02}",
    "d": lambda at: str(at.day),
    "dd": lambda at: f"{at.day:02}",
    "h": lambda at: str(at.hour),
    "hh": lambda at: f"{at.hour:02}",
    "minute": lambda at: str(at.minute),
    "minutes": lambda at: f"{at.minute:02}",
    "s": lambda at: str(at.second),
    "ss": lambda at: f"{at.second:02}",
}


def formatted(value: object, pattern: str) -> str:
    """A cell's value in its number format, on one line.

    Args:
        value: text, number, truth value, date or time, as openpyxl reads it; None is an empty cell.
        pattern: `0.00 "€"`, `dd.mm.yyyy`; for `General` and unknown patterns, the value is not formatted.
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int | float):
        return _number(value, pattern[:LONGEST_FORMAT])
    if isinstance(value, date | time):
        return _date(value, pattern[:LONGEST_FORMAT])
    if isinstance(value, timedelta):
        minutes, seconds = divmod(round(abs(value.total_seconds())), 60)
        sign = "-" if value < timedelta() else ""
        return f"{sign}{minutes // 60}:{minutes % 60:02}" + (f":{seconds:02}" if seconds else "")
    sections = _sections(pattern[:LONGEST_FORMAT])
    return "" if len(sections) == 4 and not sections[3] else str(value)  # `;;;` hides every value


def is_date(pattern: str) -> bool:
    """Whether numbers in this format are dates or times."""
    return any(token["part"] for token in _DATE_PART.finditer(pattern[:LONGEST_FORMAT]))


def _number(value: float, pattern: str) -> str:
    try:
        number = _NUMBER.create_decimal(value)
    except ArithmeticError:
        return str(value)
    sections = _sections(pattern)
    if not number.is_finite() or pattern.lower() == "general" or not _certain(pattern, sections):
        return _plain(number)
    negative = number < 0 and len(sections) > 1
    section = sections[1] if negative else sections[2] if number == 0 and len(sections) > 2 else sections[0]
    text = _filled(section, abs(number) if negative else number)
    return f"-{text}" if negative and text and "-" not in text and "(" not in text else text


def _plain(number: Decimal) -> str:
    text = f"{number:f}" if abs(number.adjusted()) < MOST_DECIMALS else str(number)
    return text.rstrip("0").rstrip(".") if "." in text and "E" not in text else text


def _filled(section: tuple[tuple[str, str], ...], number: Decimal) -> str:
    """The section with the number in place of its digits, and the sign at the start."""
    digits = next((text for kind, text in section if kind == "digits"), "")
    literal = "".join(text for kind, text in section if kind == "literal")
    scaled = number.scaleb(2 * literal.count("%") - 3 * (len(digits) - len(digits.rstrip(","))))
    whole, _, decimals = digits.rstrip(",").partition(".")
    most, least = (len(decimals.replace(",", "")), decimals.count("0"))
    rounded = abs(scaled).quantize(Decimal(1).scaleb(-most), rounding=ROUND_HALF_UP, context=Context(prec=400))
    before, _, behind = f"{rounded:f}".partition(".")
    while len(behind) > least and behind.endswith("0"):
        behind = behind[:-1]
    before = "" if before == "0" and "0" not in whole and not behind else before.zfill(whole.count("0"))
    figure = before + (f".{behind}" if behind else "")
    text = "".join(figure if kind == "digits" else text for kind, text in section)
    return " ".join(f"-{text}".split()) if scaled < 0 and rounded else " ".join(text.split())


def _certain(pattern: str, sections: tuple[tuple[tuple[str, str], ...], ...]) -> bool:
    """Whether the format is one run of digits between literals: no fraction, power of ten or condition."""
    if _CONDITION.search(pattern):
        return False
    for section in sections[:3]:
        digits = [text for kind, text in section if kind == "digits"]
        if any(kind == "unknown" for kind, _ in section) or len(digits) > 1:
            return False
        if digits and (digits[0].count(".") > 1 or len(digits[0]) > MOST_DECIMALS):
            return False
        if not digits and section and section is sections[0]:
            return False  # a text in place of the number, such as `General "euros"`
    return True


@lru_cache(maxsize=256)
def _sections(pattern: str) -> tuple[tuple[tuple[str, str], ...], ...]:
    """The sections for positive and negative numbers, zero and texts, in pieces: `literal`, `digits`, `unknown`."""
    sections: list[list[tuple[str, str]]] = [[]]
    for token in _TOKEN.finditer(pattern):
        kind = token.lastgroup
        if kind == "end":
            sections.append([])
        elif kind == "digits":
            sections[-1].append(("digits", token[0]))
        elif kind == "wide":
            sections[-1].append(("literal", " "))
        elif kind in ("quoted", "escaped", "currency"):
            sections[-1].append(("literal", token[kind]))
        elif kind == "other":
            sections[-1].append(("unknown" if token[0].isalpha() and token[0].isascii() else "literal", token[0]))
    return tuple(map(tuple, sections))


def _date(value: date | time, pattern: str) -> str:
    at = value if isinstance(value, datetime) else datetime.combine(*_whole(value))
    parts = list(_date_parts(pattern.partition(";")[0]))
    if _SYSTEM_DATE.match(pattern) or any(part is None for part in parts):
        if isinstance(value, time):
            return value.isoformat("seconds" if value.second else "minutes")
        day = at.date().isoformat()
        return day if at.time() == MIDNIGHT else f"{day} {at:%H:%M}"
    texts = [part(at) if callable(part) else part for part in parts if part is not None]
    return " ".join("".join(texts).split())


def _whole(value: date | time) -> tuple[date, time]:
    return (date.min, value) if isinstance(value, time) else (value, MIDNIGHT)


def _date_parts(pattern: str) -> Iterator[Callable[[datetime], str] | str | None]:
    """Literals, and functions for parts of a date; None: a name of a month or day, whose language is unknown."""
    found = list(_DATE_PART.finditer(pattern))
    names = [token["part"].lower() if token["part"] else "" for token in found]
    known = [name for name in names if name]
    half = any(token[0].upper() in ("AM/PM", "A/P") for token in found)
    n = -1
    for token, name in zip(found, names, strict=True):
        if name:
            n += 1
            neighbours = (known[n - 1][:1] if n else "") + "|" + (known[n + 1][:1] if n + 1 < len(known) else "")
            if name in ("m", "mm") and (neighbours.startswith("h") or neighbours.endswith("s")):
                name = "minute" if name == "m" else "minutes"
            yield None if half else _PARTS.get(name)
        elif literal := token["literal"]:
            yield literal.strip('"') if literal[0] == '"' else literal[1:] if literal[0] == "\\" else ""
        else:
            yield None if half else token[0]
