"""Days: recognizes the day that a question is about, and the rows of opening hours for it.

    "is heut markt?"          on a Wednesday ─▶ asked_day ─▶ that Wednesday
    "Wed | 8:00 to 13:00"                    ─▶ matching_rows ─▶ yes
    "Mo-Fr: ab 9", "täglich außer montags"                   ─▶ yes
    "Saturdays", "first Wednesday in the month"              ─▶ no, no (it is the fourth)
    "Closed from 30 November to 4 December"                  ─▶ yes, on these days, and closed_on

Names of weekdays and months come from Unicode's CLDR (babel), the other words from `prompts/days.yaml`. A row without
a day, such as "closed on public holidays", matches no day.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache
from itertools import pairwise
from typing import Literal

from babel.dates import format_skeleton
from dateutil.easter import easter

from pipelines.query.extractive.day_words import (
    LAST,
    DayWords,
    accentless,
    any_name,
    day_words,
    folded_text,
    words_or_english,
)
from text.language import spoken
from text.words import stems

ALL = frozenset(range(7))  # Monday is 0
WORKING, WEEKEND = frozenset(range(5)), frozenset({5, 6})
LONGEST_SPAN = timedelta(days=62)  # a longer one is a season, or how long prices are valid
RELATIVE = ("today", "tomorrow", "after-tomorrow")  # lists of days.yaml
SEVERAL = 3  # weekdays of a table of opening hours
SHORT_QUESTION = 4  # words, at most, of one that means now when it ends with "open", and Saturday by "sat"

# Feasts in the order of their names in days.yaml: a day and a month, or days after Easter Sunday.
FEASTS: tuple[tuple[int, int] | int, ...] = (
    (24, 12), (25, 12), (26, 12), (31, 12), (1, 1), (6, 1), -2, 0, 1, (1, 5), 39, 49, 50,
)  # fmt: skip

_DASH = r"[-‐‑–—]|bis|to"
_NUMERIC = re.compile(r"(?<![\d.:])(\d{1,2})\.\s?(\d{1,2})\.(?:\s?(\d{4}))?(?!\d)|(?<!\d)(\d{4})-(\d{2})-(\d{2})(?!\d)")
# "24.12?": on pages this may be a number, and in questions with a currency or a time behind it, too.
_UNFINISHED = re.compile(r"(?<![\d.:])\d{1,2}\.\d{2}(?=\s{0,3}(?:[?!,;]|$))")
_DOTTED = frozenset({"de", "pl", "ro", "tr", "uk", "ru"})  # languages whose dates are written so
_ARTICLE = "zum|den|dem|einschließlich|the|al|alla|el|le|il|lo"
_NEAR = 60  # characters before a date that are searched for what it begins or ends
_AND = "und|and|et|e|y|i|en|ve|și|si|és|es|та|и"
_NUMBER = re.compile(r"\d{1,2}")


WrittenDate = tuple[int, int, int | None]  # day, month, year


@dataclass(frozen=True)
class Span:
    """From one date to another, both included; None: open, if the other has no year for `LONGEST_SPAN`."""

    first: WrittenDate | None
    last: WrittenDate | None

    def covers(self, day: date) -> bool:
        return any(first <= day <= last for first, last in self._in_years((day.year - 1, day.year)))

    def is_short(self) -> bool:
        """Whether it has both ends, near each other."""
        both = self.first is not None and self.last is not None
        return both and any(last - first <= LONGEST_SPAN for first, last in self._in_years((2024,)))

    def _in_years(self, years: Iterable[int]) -> Iterator[tuple[date, date]]:
        """The span in each of these years, as far as it names none."""
        for year in years:
            with suppress(ValueError, OverflowError):  # there is no 31st of June
                yield self._in_year(year)

    def _in_year(self, year: int) -> tuple[date, date]:
        if self.first is None or self.last is None:
            (day, month, written) = self.first or self.last or (1, 1, None)
            end = date(written or year, month, day)
            if self.last is None:
                return end, date.max if written else end + LONGEST_SPAN
            return date.min if written else end - LONGEST_SPAN, end
        turns = (self.first[1], self.first[0]) > (self.last[1], self.last[0])  # of the year
        begins = self.first[2] or (self.last[2] - turns if self.last[2] else year)
        return (
            date(begins, self.first[1], self.first[0]),
            date(self.last[2] or begins + turns, self.last[1], self.last[0]),
        )


@dataclass(frozen=True)
class NamedDays:
    """The days that a text names."""

    weekdays: frozenset[int] = frozenset()
    nth: frozenset[int] = frozenset()  # of a month: 1..4 or LAST; empty: every one
    months: frozenset[int] = frozenset()  # empty: all year
    dates: frozenset[WrittenDate] = frozenset()
    feasts: frozenset[int] = frozenset()  # places in FEASTS
    spans: frozenset[Span] = frozenset()

    def on(self, day: date) -> bool:
        """Whether the text names this date."""
        return (
            any(_feast(feast, day.year) == day for feast in self.feasts)
            or any((d, m) == (day.day, day.month) and y in (None, day.year) for d, m, y in self.dates)
            or any(span.covers(day) for span in self.spans)
        )

    def holds(self, day: date) -> bool:
        """Whether the text's days include this day."""
        if self.on(day):
            return True
        if day.weekday() not in self.weekdays or (self.months and day.month not in self.months):
            return False
        last = (day + timedelta(days=7)).month != day.month
        return not self.nth or (day.day - 1) // 7 + 1 in self.nth or (last and LAST in self.nth)


def asked_day(question: str, now: datetime, lang: str) -> date | None:
    """The day that a question names; None without one.

    A date or a weekday is the next one of its name, including today.

    Args:
        now: in the site's time zone.
        lang: the visitor's language; the question may be in another.
    """
    for each in dict.fromkeys((lang.partition("-")[0], *sorted(spoken(question)))):
        said = _UNFINISHED.sub(r"\g<0>.", question) if each in _DOTTED else question
        if (words := day_words(each)) and (day := _asked(said, now.date(), words)):
            return day
    return None


def asks_every(question: str, lang: str) -> bool:
    """Whether a question names a weekday as one of many: "on Fridays", "freitags"."""
    said = frozenset(re.findall(r"\w+", folded_text(question)))
    languages = filter(None, map(day_words, {lang.partition("-")[0], *spoken(question)}))
    return any(f"{name}s" in said for words in languages for name in words.weekdays)


def with_feasts_dates(question: str, today: date, lang: str) -> str:
    """The question with the date of a feast behind its name, since pages may have the date only."""
    tag = lang.partition("-")[0]
    for each in dict.fromkeys((tag, *sorted(spoken(question)))):
        if words := day_words(each):
            for feast in _feasts(folded_text(question), words):
                return f"{question} {format_skeleton('MMMMd', _next(feast, today), locale=each)}"
    return question


def matching_rows(rows: Sequence[str], day: date, lang: str) -> list[int]:
    """The indexes of the rows, list items or sentences about a day. If some name its date, only those.

    The opening hours of a weekday are not those of a feast: of one, rows that name holidays count.

    Args:
        rows: plain text.
        lang: the page's language.
    """
    said = [said_days(row, lang) for row in rows]
    dated = [n for n, each in enumerate(said) if each.on(day)]
    if not dated and any(_feast(feast, day.year) == day for feast in range(len(FEASTS))):
        words = words_or_english(lang)
        return [n for n, row in enumerate(rows) if words.has("holidays", folded_text(row))]
    return dated or [n for n, each in enumerate(said) if each.holds(day)]


def lacks_day(rows: Sequence[str], day: date, lang: str) -> bool:
    """Whether the rows are those of several weekdays, and this day is not among them."""
    named = [said_days(row, lang) for row in rows]
    weekdays = frozenset[int]().union(*(each.weekdays for each in named))
    return len(weekdays) >= SEVERAL and not any(each.holds(day) or day.weekday() in each.weekdays for each in named)


def says_closed(text: str, lang: str) -> bool:
    """Whether a text says that something is closed, at some time."""
    return words_or_english(lang).has("closed", folded_text(text))


@cache
def closing_stems(lang: str) -> frozenset[str]:
    """The stems of the words by which a language says that something is closed, or closes; none if it is unknown."""
    words = day_words(lang)
    names = [name for name in words.listed["closed"] if " " not in name] if words else []
    return frozenset(stem for name in names for stem in stems(name, lang))


def closed_on(text: str, day: date, lang: str) -> bool:
    """Whether a text says that something is closed on a date, or for now; a weekday alone is no date."""
    words, folded = words_or_english(lang), folded_text(text)
    return words.has("closed", folded) and (words.has("for-now", folded) or said_days(text, lang).on(day))


def said_days(text: str, lang: str) -> NamedDays:
    """The days that a text names."""
    words, folded = words_or_english(lang), folded_text(text)
    months = _months(folded, words)
    dates = frozenset(_dates(folded, words))
    weekdays = _weekdays(_dated(words).sub("", accentless(text)), words)  # "Saturday, 9 January" is no other Saturday
    if words.has("daily", folded):
        weekdays = (ALL - weekdays) if weekdays and words.has("except", folded) else ALL
    if words.has("weekend", folded):
        weekdays |= WEEKEND
    if words.has("working", folded):
        weekdays |= WORKING
    nth = frozenset(_nth(folded, words)) if weekdays else frozenset()
    spans = frozenset(_spans(folded, words))
    return NamedDays(frozenset(weekdays), nth, months, dates, frozenset(_feasts(folded, words)), spans)


def weekdays_in(question: str, langs: Iterable[str]) -> frozenset[int | str]:
    """The weekdays that a question names in any of these languages; "today" is one, too, whenever it is asked."""
    found: set[int | str] = set()
    for lang in langs:
        if words := day_words(lang):
            found |= said_days(question, lang).weekdays
            found.update(name for name in RELATIVE if words.has(name, folded_text(question)))
    return frozenset(found)


def _asked(question: str, today: date, words: DayWords) -> date | None:
    folded = folded_text(question)
    for day, month, year in _dates(folded, words):
        with suppress(ValueError):  # there is no 31st of June
            that = date(year or today.year, month, day)
            return that if year or that >= today else that.replace(year=today.year + 1)
    for feast in _feasts(folded, words):
        return _next(feast, today)
    if words.has("after-tomorrow", folded):
        return today + timedelta(days=2)
    if words.has("today", folded):
        return today
    if words.has("tomorrow", folded):
        return today + timedelta(days=1)
    short = len(folded.split()) <= SHORT_QUESTION
    if named := _weekdays(question, words) or (_small(folded, words) if short else frozenset()):
        return today + timedelta(days=min((weekday - today.weekday()) % 7 for weekday in named))
    ended = folded.rstrip(" ?!.؟？")
    now = short and not words.has("when", folded) and any(_ends(ended, w, words.spaced) for w in words.listed["open"])
    return today if now else None


def _small(folded: str, words: DayWords) -> frozenset[int]:
    """Abbreviated weekdays in lower case."""
    return frozenset(words.small[word] for word in re.findall(r"\w+", folded) if word in words.small)


def _weekdays(text: str, words: DayWords) -> frozenset[int]:
    """The weekdays in a text, including those within ranges."""
    folded = folded_text(text)
    names = sorted(words.weekdays, key=len, reverse=True)
    places = [(m.start(), m.end(), words.weekdays[m.group()]) for m in any_name(names, words.spaced).finditer(folded)]
    # Abbreviations depend on case, and folding moves offsets: they are searched in the unfolded text.
    if words.short:
        plain = accentless(text)
        shorts = any_name(sorted(words.short, key=len, reverse=True), words.spaced)
        if len(plain) == len(folded):
            every = sorted([*places, *((m.start(), m.end(), words.short[m.group()]) for m in shorts.finditer(plain))])
            starts = {start for start, _, _ in every}
            full = {start for start, _, _ in places}
            joined = _joined(words)
            places = [each for each in every if each[0] in full or _stands_for_a_day(plain, each, starts, joined)]
    found = {weekday for _, _, weekday in places}
    for (_, end, first), (start, _, last) in pairwise(_apart(places)):
        if _through(words).fullmatch(folded[end:start]):
            found |= {(first + n) % 7 for n in range((last - first) % 7 + 1)}
    return frozenset(found)


def _apart(places: Iterable[tuple[int, int, int]]) -> Iterator[tuple[int, int, int]]:
    """The matches in order, without overlaps."""
    reached = -1
    for start, end, weekday in sorted(places, key=lambda place: (place[0], -place[1])):
        if start >= reached:
            yield start, end, weekday
            reached = end


def _stands_for_a_day(text: str, place: tuple[int, int, int], starts: set[int], joined: re.Pattern[str]) -> bool:
    """Whether "So" or "Sat" is a weekday: it is alone, or before a time, a colon or another weekday."""
    rest = text[place[1] :]
    if re.match(r"\.?\s*(?:[:|/–—-]|\d|$|[)\]])", rest):
        return True
    after = joined.match(rest)
    return after is not None and place[1] + after.end() in starts


def _dated(words: DayWords) -> re.Pattern[str]:
    """Weekdays that belong to a date right behind them."""
    return _dated_of(tuple(words.weekdays), tuple(words.months))


@cache
def _dated_of(weekdays: Sequence[str], months: Sequence[str]) -> re.Pattern[str]:
    names, these = ("|".join(map(re.escape, sorted(each, key=len, reverse=True))) for each in (weekdays, months))
    day = rf"\d{{1,2}}(?:\.|st|nd|rd|th|er)?\s*(?:de |of )?(?:{these})(?!\w)|\d{{1,2}}\.\s?\d{{1,2}}\.|(?:{these})\s\d"
    return re.compile(rf"(?<!\w)(?:{names}),?\s*(?:the |den |dem |el |le |il )?(?={day})", re.IGNORECASE)


@cache
def _through_of(to: frozenset[str]) -> re.Pattern[str]:
    return re.compile(rf"\.?\s*(?:{_DASH}|{'|'.join(map(re.escape, sorted(to, key=len, reverse=True)))})\s*")


def _through(words: DayWords) -> re.Pattern[str]:
    return _through_of(words.listed["to"])


def _joined(words: DayWords) -> re.Pattern[str]:
    return _joined_of(words.listed["to"])


@cache
def _joined_of(words: frozenset[str]) -> re.Pattern[str]:
    to = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
    return re.compile(rf"\.?\s*(?:,|&|\+|{_AND}|{to})\s*")


def _months(folded: str, words: DayWords) -> frozenset[int]:
    """The months of ranges such as "May to September"."""
    places = list(any_name(sorted(words.months, key=len, reverse=True), words.spaced).finditer(folded))
    between: set[int] = set()
    for one, other in pairwise(places):
        gap = folded[one.end() : other.start()]
        first, last = words.months[one.group()], words.months[other.group()]
        if _through(words).fullmatch(re.sub(r"\d{1,2}\.?(?:st|nd|rd|th)?|\b(?:zum|the|dem)\b", "", gap)):
            between |= {(first - 1 + n) % 12 + 1 for n in range((last - first) % 12 + 1)}
    return frozenset(between)


def _spans(folded: str, words: DayWords) -> Iterator[Span]:
    """The spans between two dates; where something is closed, also longer and open ones, and whole months."""
    closed = words.has("closed", folded)
    places = sorted(_placed(folded, words))
    inner: set[int] = set()  # places of dates that end a span
    for (_, end, first), (start, _, last) in pairwise(places):
        if _gap(words).fullmatch(folded[end:start]):
            inner |= {end, start}
            span = Span(first, last)
            if closed or span.is_short():
                yield span
    if not closed:
        return
    for start, end, written in places:
        if start not in inner and end not in inner:
            if _before(words, "to").search(folded[:start][-_NEAR:]):
                yield Span(None, written)
            elif _before(words, "from").search(folded[:start][-_NEAR:]):
                yield Span(written, None)
    for named in any_name(sorted(words.months, key=len, reverse=True), words.spaced).finditer(folded):
        if not any(start <= named.start() < end for start, end, _ in places):
            year = re.match(r",?\s{0,3}(?:de )?(\d{4})(?!\d)", folded[named.end() :])
            yield _month(words.months[named.group()], int(year[1]) if year else None)
    if not places:
        yield from (_month(month, None) for month in _months(folded, words))


def _month(month: int, year: int | None) -> Span:
    return Span((1, month, year), (monthrange(year or 2023, month)[1], month, year))


def _placed(folded: str, words: DayWords) -> Iterator[tuple[int, int, WrittenDate]]:
    """(start, end, date) of each date."""
    for match in _NUMERIC.finditer(folded):
        if written := _numeric(match):
            yield *match.span(), written
    for pattern in _written(tuple(words.months), frozenset(words.listed["to"])):
        for match in pattern.finditer(folded):
            if 1 <= int(match["day"]) <= 31:
                year = int(match["year"]) if match["year"] else None
                yield *match.span(), (int(match["day"]), words.months[match["month"]], year)


def _gap(words: DayWords) -> re.Pattern[str]:
    """What stands between the two dates of a span: "bis zum", "to Friday, "."""
    return _gap_of(words.listed["to"], tuple(words.weekdays))


@cache
def _gap_of(to: frozenset[str], weekdays: Sequence[str]) -> re.Pattern[str]:
    through, names = ("|".join(map(re.escape, sorted(each, key=len, reverse=True))) for each in (to, weekdays))
    return re.compile(rf"\.?,?\s{{0,3}}(?:{_DASH}|{through})\s{{0,3}}(?:(?:{_ARTICLE}|{names}),?\s{{1,3}}){{0,2}}")


def _before(words: DayWords, name: Literal["to", "from"]) -> re.Pattern[str]:
    """A word of the list right before a date, perhaps with an article or a weekday."""
    return _before_of(words.listed[name], tuple(words.weekdays), words.spaced)


@cache
def _before_of(listed: frozenset[str], weekdays: Sequence[str], spaced: bool) -> re.Pattern[str]:
    these, names = (
        "|".join(map(re.escape, sorted(filter(None, each), key=len, reverse=True))) for each in (listed, weekdays)
    )
    bound = r"(?<!\w)" if spaced else ""
    return re.compile(rf"{bound}(?:{these or '(?!)'})\s{{0,3}}(?:(?:{_ARTICLE}|{names}),?\s{{1,3}}){{0,2}}$")


def _numeric(match: re.Match[str]) -> WrittenDate | None:
    day, month, year, iso_year, iso_month, iso_day = match.groups()
    parts = (int(iso_day), int(iso_month), int(iso_year)) if iso_year else (int(day), int(month), int(year or 0))
    return (parts[0], parts[1], parts[2] or None) if 1 <= parts[0] <= 31 and 1 <= parts[1] <= 12 else None


def _dates(folded: str, words: DayWords) -> Iterator[WrittenDate]:
    """The dates in a text, with their year if it is written."""
    yield from filter(None, map(_numeric, _NUMERIC.finditer(folded)))
    for pattern in _written(tuple(words.months), frozenset(words.listed["to"])):
        for match in pattern.finditer(folded):
            last, year = int(match["day"]), int(match["year"]) if match["year"] else None
            first = int(match["first"] or last)
            for day in {*map(int, _NUMBER.findall(match["others"] or "")), *range(first, last + 1)}:
                if 1 <= day <= 31:
                    yield day, words.months[match["month"]], year


def _feasts(folded: str, words: DayWords) -> Iterator[int]:
    """The feasts in a text."""
    if words.feasts:
        names = sorted(words.feasts, key=len, reverse=True)
        yield from (words.feasts[match.group()] for match in any_name(names, words.spaced).finditer(folded))


def _feast(feast: int, year: int) -> date:
    """A feast's date in a year. Easter is that of the western churches."""
    when = FEASTS[feast]
    if isinstance(when, int):
        sunday: date = easter(year)
        return sunday + timedelta(days=when)
    return date(year, when[1], when[0])


def _next(feast: int, today: date) -> date:
    return min(that for year in (today.year, today.year + 1) if (that := _feast(feast, year)) >= today)


@cache
def _written(names: Sequence[str], to: frozenset[str]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Dates with the name of a month: "3 October 2027", "October 3rd", "24 and 31 December", "24 to 26 December"."""
    months = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    through = "|".join((_DASH, *map(re.escape, sorted(to, key=len, reverse=True))))
    th = r"(?:\.|st|nd|rd|th|er|º)?"
    more = (
        rf"(?P<others>(?:\d{{1,2}}{th}\s{{0,3}}(?:,|&|\+|{_AND})\s{{0,3}}){{0,6}})"
        rf"(?:(?P<first>\d{{1,2}}){th}\s{{0,3}}(?:{through})\s{{0,3}})?"
    )
    before = rf"(?<![\d.:]){more}(?P<day>\d{{1,2}}){th}\s*(?:de |of |די )?(?P<month>{months})(?!\w)"
    after = rf"(?<!\w)(?P<month>{months})\s+{more}(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?![\d:.])"
    year = r"(?:,?\s*(?:de )?(?P<year>\d{4}))?"
    return re.compile(before + year), re.compile(after + year)


def _nth(folded: str, words: DayWords) -> Iterator[int]:
    """The ordinals of weekdays in a month: "first Saturday"."""
    for match in _ordinals(tuple(words.ordinals), tuple(words.weekdays)).finditer(folded):
        yield words.ordinals[match[1]]
        if match[2]:
            yield words.ordinals[match[2]]


@cache
def _ordinals(ordinals: Sequence[str], weekdays: Sequence[str]) -> re.Pattern[str]:
    """ "First Saturday", "first and third Saturday"."""
    which, names = ("|".join(map(re.escape, sorted(each, key=len, reverse=True))) for each in (ordinals, weekdays))
    return re.compile(rf"(?<!\w)({which or '(?!)'})\s+(?:(?:and|und|et|e|y|i|en)\s+({which or '(?!)'})\s+)?(?:{names})")


def _ends(text: str, word: str, spaced: bool) -> bool:
    return text.endswith(word) and (not spaced or text == word or text.endswith(f" {word}"))
