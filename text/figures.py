"""Finds figures in texts (numbers, dates, times, addresses), so that two texts can be compared by them.

    "am 15. August von 9 bis 12.30 Uhr, 2.480 €" ─▶ date 8-15, time 9:00, time 12:30, number 2480 EUR
    "15 August, 9 am to 12:30 pm, €2,480"        ─▶ the same

Ambiguous figures (1.234, 03/04) have several readings. Two figures are equal if they share a reading.
"""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cache, lru_cache
from itertools import chain, pairwise
from typing import Literal

from text.measures import Measures, MeasureUnit, measures

Kind = Literal["number", "date", "time", "weekday", "phone", "address"]
Date = tuple[int | None, int | None, int | None]  # year, month, day

DAY = 24 * 60  # minutes
NOON = 12 * 60
PHONE_DIGITS = 7  # of the shortest telephone number
LONGEST_NUMBER = 40  # characters; longer ones are ignored
MOST_WORDS = 4  # of a spelled number
JOINTS = frozenset((" ", "-", "\u00a0", "\u2011"))  # between its words
COUNTED = 3  # smallest spelled number; "one" and "two" are often idioms

_DIGITS = {ord(ch): str(n) for zero in "٠۰०๐០၀０" for n in range(10) for ch in (chr(ord(zero) + n),)} | {
    ord("٫"): ".",
    ord("٬"): ",",
    ord("："): ":",
}
_ADDRESS = re.compile(r"(?<![\w.+-])[\w.+-]++@[\w-]++(?:\.[\w-]+)+|(?:https?://|www\.)[^\s<>()\[\]\"']+", re.IGNORECASE)
_ISO = re.compile(r"(?<!\d)(\d{4})-(\d{2})-(\d{2})(?!\d)")
_DOTTED = re.compile(r"(?<![\d.,])(\d{1,2})\.\s?(\d{1,2})\.(?:\s?(\d{4}|\d{2})(?!\d|[.,:]\d|\s?Uhr))?(?!\d)")
_SLASHED = re.compile(r"(?<![\d/])(\d{1,2})/(\d{1,2})/(\d{4})(?![\d/])")
_CHINESE_DATE = re.compile(r"(?:(\d{4})\s?年\s?)?(\d{1,2})\s?月\s?(\d{1,2})\s?[日号]")
_HALF = r"(?P<half>\s?[ap]\.?\s?m\b\.?)"
_MARK = r"(?P<mark>\s?(?:Uhr|o['’]clock|heures?|óra|órakor|godz|h\b|点|點|时|時))"
_CLOCK = re.compile(
    rf"(?<![\d.,:/])(?P<hour>2[0-4]|[01]?\d)(?!\d)(?:(?P<colon>:|\s?h\s?)(?P<minute>[0-5]\d)(?!\d|[:.]\d)|\.(?P<dotted>[0-5]\d)(?!\d|[.,]\d))?"
    rf"(?:{_HALF}|{_MARK})?",
    re.IGNORECASE,
)
_RANGE = re.compile(r"\s*(?:[-–—]|to|till|until|and|bis|und|à|et|a|al|alle|y|do|i|és|至|到|إلى)\s*", re.IGNORECASE)
_IN_PHONE = r"[\d()/–-]+"
_PHONE = re.compile(
    # Each number has only one match: optional spaces between groups would cause thousands of backtracking steps.
    rf"(?<![\w.,])(?:\+\s?)?\(?\d(?:{_IN_PHONE}(?:[ ]{_IN_PHONE}){{0,8}}|(?:[ ]{_IN_PHONE}){{1,8}})(?!\w)"
)
_NUMBER = re.compile(r"(?<![\d.,:])\d+(?:(?:[.,'’\u00a0\u202f ])\d{3}(?!\d))*(?:[.,]\d+)?(?![\d:])")
_GROUPED = re.compile(r"\d{1,3}(?:[.,'’\u00a0\u202f ]\d{3})+")
_LATIN = re.compile(r"[A-Z]")
_LETTER = re.compile(r"[^\W\d_]")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?\.?")
_THROUGH = re.compile(r"\s*(?:[-–—]|to|through|till|until|bis|à|au|al|a|do|至|到|إلى)\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Figure:
    """A figure at `text[start:end]`.

    `numbers`, `times` (minutes since midnight; for weekdays, the days) and `dates` are its possible readings. `unit` is
    None without one. `said` is a telephone number's digits or an address, folded.
    """

    kind: Kind
    start: int
    end: int
    numbers: frozenset[Fraction] = frozenset()
    times: frozenset[int] = frozenset()
    dates: frozenset[Date] = frozenset()
    unit: MeasureUnit | None = None
    said: str = ""
    spelled: bool = False
    vague: bool = False  # it may mean something else: it bears others, and claims nothing itself

    def bears(self, other: Figure) -> bool:
        """Whether this figure supports the other one. A number without a unit matches any unit."""
        if self.kind == "date" or other.kind == "date":
            if self.kind == "number":  # "1.05." at the end of a sentence is a date or a number
                return self.unit is None and bool(self.numbers & other.numbers)
            if other.kind == "number":
                years = {Fraction(date[0]) for date in self.dates if date[0] is not None}
                return other.unit is None and bool((years | self.numbers) & other.numbers)
            return any(_within(mine, theirs) for mine in self.dates for theirs in other.dates)
        if other.kind == "weekday" or self.kind == "weekday":
            return self.kind == other.kind and bool(self.times & other.times)
        if other.kind == "phone":
            mine, theirs = self.said.lstrip("0"), other.said.lstrip("0")
            return self.kind == "phone" and (mine.endswith(theirs) or theirs.endswith(mine))
        if other.kind == "address" or self.kind == "address":
            return self.said == other.said
        if other.kind == "time":
            return bool(self.times & other.times)
        return self._counts(other) or (self.kind == "time" and other.unit is None and bool(self.times & other.times))

    def _counts(self, other: Figure) -> bool:
        if self.unit is None or other.unit is None:
            return bool(self.numbers & other.numbers)
        return bool(self.unit.base & other.unit.base) and any(
            mine * self.unit.factor == theirs * other.unit.factor for mine in self.numbers for theirs in other.numbers
        )

    @property
    def family(self) -> str:
        """The kind by which figures may be confused with each other: prices, durations, times of day."""
        if self.kind != "number" or self.unit is None:
            return self.kind
        return "price" if all(code.isupper() for code in self.unit.base) else min(self.unit.base)


@dataclass
class _Reading:
    """The state of reading a text: the figures found, and the ranges that are taken."""

    text: str
    lexicons: Sequence[Measures]
    found: list[Figure] = field(default_factory=list)
    taken: list[tuple[int, int]] = field(default_factory=list)  # in order, without overlaps

    def free(self, start: int, end: int) -> bool:
        behind = bisect_left(self.taken, (end, 0))
        return behind == 0 or self.taken[behind - 1][1] <= start

    def take(self, figure: Figure) -> None:
        self.found.append(figure)
        insort(self.taken, (figure.start, figure.end))


def figures(text: str, langs: Iterable[str]) -> list[Figure]:
    """All figures of a text, in order.

    Args:
        langs: possible languages of the text, for months, units and spelled numbers.
    """
    reading = _Reading(text.translate(_DIGITS), [measures(lang) for lang in dict.fromkeys(langs)])
    _addresses(reading)
    _dates(reading)
    _times(reading)
    _phones(reading)
    _numbers(reading)
    _weekdays(reading)
    return sorted(reading.found, key=lambda figure: figure.start)


def weekdays_between(found: Sequence[Figure], text: str) -> frozenset[int]:
    """All weekdays in a text, including those in ranges: Monday to Friday are five."""
    days = [figure for figure in found if figure.kind == "weekday"]
    named = {day for figure in days for day in figure.times}
    for first, last in pairwise(days):
        if _THROUGH.fullmatch(text, first.end, last.start):
            [begin], [end] = first.times, last.times
            named.update((begin + n) % 7 for n in range((end - begin) % 7 + 1))
    return frozenset(named)


def _within(mine: Date, theirs: Date) -> bool:
    """Whether the dates agree in all parts that both have, and share a month or a day."""
    return all(a is None or b is None or a == b for a, b in zip(mine, theirs, strict=True)) and any(
        a is not None and a == b for a, b in zip(mine[1:], theirs[1:], strict=True)
    )


def _addresses(reading: _Reading) -> None:
    for match in _ADDRESS.finditer(reading.text):
        said = re.sub(r"^(?:https?://)?(?:www\.)?", "", match.group().rstrip(".,;:!?").casefold()).rstrip("/")
        reading.take(Figure("address", match.start(), match.end(), said=said))


def _dates(reading: _Reading) -> None:
    text = reading.text
    for match in _ISO.finditer(text):
        _take_date(reading, match, {(int(match[1]), int(match[2]), int(match[3]))})
    for match in _CHINESE_DATE.finditer(text):
        _take_date(reading, match, {(int(match[1]) if match[1] else None, int(match[2]), int(match[3]))})
    for match in _SLASHED.finditer(text):
        first, second, then = (int(part) for part in match.groups())
        _take_date(reading, match, {(then, second, first), (then, first, second)})
    for match in _DOTTED.finditer(text):
        year = int(match[3]) if match[3] else None
        if year is not None and year < 100:
            year += 2000
        number = frozenset([Fraction(f"{match[1]}.{match[2]}")]) if len(match[2]) == 2 and not match[3] else frozenset()
        _take_date(reading, match, {(year, int(match[2]), int(match[1]))}, number)
    for lexicon in reading.lexicons:
        for names, alone in ((lexicon.months, True), (lexicon.months_short, False)):
            _named_dates(reading, names, alone)


def _take_date(
    reading: _Reading, match: re.Match[str], dates: Iterable[Date], numbers: frozenset[Fraction] = frozenset()
) -> None:
    right = frozenset(d for d in dates if d[1] in (None, *range(1, 13)) and d[2] in (None, *range(1, 32)))
    if right and reading.free(*match.span()):
        reading.take(Figure("date", *match.span(), dates=right, numbers=numbers))


def _named_dates(reading: _Reading, names: Mapping[str, int], alone: bool) -> None:
    """15 August 2027, August 15th, 15. August; a month alone only by its whole name."""
    for match in _date_pattern(tuple(names)).finditer(reading.text):
        if not reading.free(*match.span()):
            continue
        day, year = match["before"] or match["after"], match["year"]
        if day is None and year is None and (not alone or match.start() == 0):  # May I ...?
            continue
        if day is not None and not 1 <= int(day) <= 31:
            continue
        date = (int(year) if year else None, names[match["month"]], int(day) if day else None)
        reading.take(Figure("date", *match.span(), dates=frozenset([date])))


@cache
def _date_pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    month = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    ordinal = r"(?:st|nd|rd|th|er|º|ª|\.)?"
    return re.compile(
        rf"(?:(?<![\d.,:])(?P<before>\d{{1,2}}){ordinal}\s*(?:of\s+|de\s+|d['’]\s?)?)?"
        rf"(?<!\w)(?P<month>{month})(?!\w)\.?"
        rf"(?:(?:,?\s*(?:de\s+|del\s+)?)(?P<year>(?:1\d|20)\d\d)(?!\d)"
        rf"|\s+(?P<after>\d{{1,2}}){ordinal}(?![\d:.,]\d|\s?(?:Uhr|h\b|[ap]\.?m))(?:,?\s*(?P<year2>(?:1\d|20)\d\d)(?!\d))?)?"
    )


def _times(reading: _Reading) -> None:
    text = reading.text
    clocks = [match for match in _CLOCK.finditer(text) if reading.free(*match.span())]
    # An hour after noon, or a leading zero, shows a 24-hour clock, where 8:00 is in the morning.
    to_24 = any(
        not match["half"]
        and (match["minute"] or match["mark"])
        and (int(match["hour"]) > 12 or match["hour"][0] == "0")
        for match in clocks
    )
    for i, match in enumerate(clocks):
        beside = [clocks[k] for k in (i - 1, i + 1) if 0 <= k < len(clocks)]
        ranged = any(
            (other["half"] or other["mark"] or other["minute"] or (match["dotted"] and other["dotted"]))
            and _RANGE.fullmatch(text, min(match.end(), other.end()), max(match.start(), other.start()))
            for other in beside
        )
        sure = match["half"] or match["mark"] or match["minute"]
        if (sure or ranged) and not (match["mark"] and _duration(match)):
            reading.take(Figure("time", *match.span(), numbers=_bare(match), times=_minutes(match, to_24=to_24)))


def _duration(match: re.Match[str]) -> bool:
    """Whether it may be a duration: `2 h` may, but `14 h` and anything with minutes is a time of day."""
    return match["mark"].strip().lower() == "h" and not match["minute"] and int(match["hour"]) < 5


def _minutes(match: re.Match[str], *, to_24: bool) -> frozenset[int]:
    hour, minute = int(match["hour"]), int(match["minute"] or match["dotted"] or 0)
    if match["half"]:
        return frozenset([(hour % 12 + (12 if "p" in match["half"].lower() else 0)) * 60 + minute])
    at = (hour * 60 + minute) % DAY
    if to_24 or hour > 12 or match["mark"] or match["hour"][0] == "0":
        return frozenset([at])
    return frozenset([at, (at + NOON) % DAY])


def _bare(match: re.Match[str]) -> frozenset[Fraction]:
    return frozenset([Fraction(int(match["hour"]))]) if not (match["minute"] or match["dotted"]) else frozenset()


def _phones(reading: _Reading) -> None:
    for match in _PHONE.finditer(reading.text):
        digits = re.sub(r"\D", "", match.group())
        grouped = _GROUPED.fullmatch(match.group().strip())
        if len(digits) >= PHONE_DIGITS and not grouped and reading.free(*match.span()):
            country = match.group().startswith("+") or digits.startswith("00")
            said = digits.lstrip("0")[2:] if country else digits
            reading.take(Figure("phone", *match.span(), said=said))


def _numbers(reading: _Reading) -> None:
    text = reading.text
    for match in _NUMBER.finditer(text):
        if match.end() - match.start() > LONGEST_NUMBER:
            continue
        inside = _LETTER.match(text[match.start() - 1 : match.start()]) and not _unspaced(text, match)
        if not inside and reading.free(*match.span()):
            counted = _counted(reading, match.start(), match.end(), _readings(match.group()))
            # "5km" has a unit, "3D" is a word.
            if counted.unit is not None or not _LATIN.match(text, match.end()):
                reading.take(counted)
    for lexicon in reading.lexicons:
        for start, end, n in _spelled(text, lexicon):
            if reading.free(start, end):
                reading.take(_counted(reading, start, end, frozenset([Fraction(n)]), spelled=True))


def _spelled(text: str, lexicon: Measures) -> Iterator[tuple[int, int, int]]:
    """Start, end and value of spelled numbers, of several words too: thirty-two, quatre-vingt-dix."""
    run: list[re.Match[str]] = []
    for word in chain(_WORD.finditer(text), [None]):
        joined = word is not None and bool(run) and text[run[-1].end() : word.start()] in JOINTS
        while run and not (joined and len(run) < MOST_WORDS):
            found = next((n for n in range(len(run), 0, -1) if _of_words(run[:n]) in lexicon.numbers), 0)
            if found:
                yield run[0].start(), run[found - 1].end(), lexicon.numbers[_of_words(run[:found])]
            del run[: found or 1]
        if word is not None:
            run.append(word)


def _of_words(run: Sequence[re.Match[str]]) -> str:
    return " ".join(word.group() for word in run).casefold().rstrip(".")


def _unspaced(text: str, match: re.Match[str]) -> bool:
    """Whether the number follows a word of a script without spaces."""
    return match.start() > 0 and ord(text[match.start() - 1]) > 0x2E80


@lru_cache(1024)
def _readings(said: str) -> frozenset[Fraction]:
    spaced = re.sub(r"['’\u00a0\u202f ]", "", said)
    marks = [ch for ch in spaced if ch in ".,"]
    found = set()
    if not marks:
        found.add(Fraction(spaced))
    elif len(set(marks)) == 2:  # the last one is the decimal mark
        whole, _, rest = spaced.rpartition(marks[-1])
        found.add(Fraction(Decimal(re.sub("[.,]", "", whole) + "." + rest)))
    else:
        tail = len(spaced) - spaced.rfind(marks[0]) - 1
        if tail == 3:
            found.add(Fraction(re.sub("[.,]", "", spaced)))
        if len(marks) == 1:
            found.add(Fraction(Decimal(spaced.replace(",", "."))))
    return frozenset(found)


def _counted(reading: _Reading, start: int, end: int, numbers: frozenset[Fraction], *, spelled: bool = False) -> Figure:
    """A number with its unit, which follows it, or precedes it for some currencies."""
    text = reading.text
    for lexicon in reading.lexicons:
        scale = _NEXT.match(text, end)
        power = lexicon.scales.get(scale.group("word").casefold().rstrip(".")) if scale else None
        if scale and power:
            numbers, end = frozenset(n * power for n in numbers), scale.end()
            break
    unit, until = None, end
    for lexicon in reading.lexicons:
        unit, until = _unit_after(text, end, lexicon)
        unit = unit or _unit_before(text, start, lexicon)
        if unit is not None:
            break
    times = frozenset(int(n) * 60 for n in numbers if n.denominator == 1 and n <= 24) if unit is None else frozenset()
    times |= frozenset((t + NOON) % DAY for t in times if t <= NOON)
    clock = re.fullmatch(r"([01]?\d|2[0-4])\.([0-5]\d)", text[start:end])
    if clock and unit is None:
        times |= {int(clock[1]) * 60 + int(clock[2])}
    return Figure("number", start, until, numbers=numbers, times=times, unit=unit, spelled=spelled)


_NEXT = re.compile(r"[ \u00a0\u202f-]?(?P<word>[^\W\d_]+\.?)")
_SIGN = re.compile(r"[ \u00a0\u202f]?(?P<word>[%€$£¥₹₺₴₪฿]|°C)")


def _unit_after(text: str, end: int, lexicon: Measures) -> tuple[MeasureUnit | None, int]:
    sign = _SIGN.match(text, end)
    if sign:
        return lexicon.unit(sign["word"]), sign.end()
    word = _NEXT.match(text, end)
    if word is None:
        return None, end
    more = _NEXT.match(text, word.end())
    if more and (unit := lexicon.unit(f"{word['word']} {more['word']}")):
        return unit, more.end()
    unit = lexicon.unit(word["word"])
    if unit is None and ord(word["word"][0]) > 0x2E80:  # a script without spaces: the longest prefix that is a unit
        for n in range(min(len(word["word"]), 4), 0, -1):
            if (unit := lexicon.units.get(word["word"][:n])) is not None:
                return unit, word.start("word") + n
    return (unit, word.start("word") + len(word["word"].rstrip("."))) if unit else (None, end)


_BEFORE = re.compile(r"(?:(?<!\w)([A-Z]{3})|([€$£¥₹₺₴₪฿]))[ \u00a0\u202f]?$")


def _unit_before(text: str, start: int, lexicon: Measures) -> MeasureUnit | None:
    match = _BEFORE.search(text, max(0, start - 5), start)
    return lexicon.unit(match[1] or match[2]) if match else None


_BRIEF = re.compile(r"[.,]|\s?[-–]|\s?\d")  # after an abbreviated weekday


def _weekdays(reading: _Reading) -> None:
    for lexicon in reading.lexicons:
        for word in _WORD.finditer(reading.text):
            said = word.group().rstrip(".")
            day = lexicon.weekdays_short.get(said)
            doubtful = said.islower() or word.start() == 0  # "So" in German is Sunday or a word
            if day is not None and doubtful and not _BRIEF.match(reading.text, word.start() + len(said)):
                day = None
            if day is None:
                day = _weekday(said.casefold(), lexicon.weekdays)
            if day is not None and reading.free(*word.span()):
                reading.take(
                    Figure("weekday", word.start(), word.start() + len(said), times=frozenset([day]), said=said)
                )


def _weekday(word: str, names: Mapping[str, int]) -> int | None:
    """The weekday of a full name, also with endings of adverbs and cases: mittwochs, szerdán, środę."""
    for name, day in names.items():
        if word == name or (len(name) > 4 and word.startswith(name[:-1]) and len(word) <= len(name) + 2):
            return day
    return None
