"""Days: recognizes the day that a question is about, and the rows of opening hours for it.

    "is heut markt?"          on a Wednesday ─▶ asked_day ─▶ that Wednesday
    "Wed | 8:00 to 13:00"                    ─▶ matching_rows ─▶ yes
    "Mo-Fr: ab 9", "täglich außer montags"                   ─▶ yes
    "Saturdays", "first Wednesday in the month"              ─▶ no, no (it is the fourth)

Names of weekdays and months come from Unicode's CLDR (babel), the other words from `prompts/days.yaml`. A row without
a day, such as "closed on public holidays", matches no day.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import cache
from itertools import pairwise

from babel import Locale, UnknownLocaleError
from babel.dates import format_skeleton
from dateutil.easter import easter

from prompts.loader import sentences
from text.folding import normalized
from text.language import spoken

ALL = frozenset(range(7))  # Monday is 0
WORKING, WEEKEND = frozenset(range(5)), frozenset({5, 6})
LAST = -1  # of a month
SHORT_QUESTION = 4  # words, at most, of one that means now when it ends with "open", and Saturday by "sat"

# Feasts in the order of their names in days.yaml: a day and a month, or days after Easter Sunday.
FEASTS: tuple[tuple[int, int] | int, ...] = (
    (24, 12), (25, 12), (26, 12), (31, 12), (1, 1), (6, 1), -2, 0, 1, (1, 5), 39, 49, 50,
)  # fmt: skip

_DASH = r"[-‐‑–—]|bis|to"
_NUMERIC = re.compile(r"(?<![\d.:])(\d{1,2})\.\s?(\d{1,2})\.(?:\s?(\d{4}))?(?!\d)|(?<!\d)(\d{4})-(\d{2})-(\d{2})(?!\d)")
_AND = "und|and|et|e|y|i|en|ve|și|si|és|es|та|и"
_NUMBER = re.compile(r"\d{1,2}")
_UNSPACED = frozenset({"zh", "ja", "th", "lo", "my", "km"})


@dataclass(frozen=True)
class NamedDays:
    """The days that a text names."""

    weekdays: frozenset[int] = frozenset()
    nth: frozenset[int] = frozenset()  # of a month: 1..4 or LAST; empty: every one
    months: frozenset[int] = frozenset()  # empty: all year
    dates: frozenset[tuple[int, int, int | None]] = frozenset()  # day, month, year
    feasts: frozenset[int] = frozenset()  # places in FEASTS

    def on(self, day: date) -> bool:
        """Whether the text names this date."""
        return any(_feast(feast, day.year) == day for feast in self.feasts) or any(
            (d, m) == (day.day, day.month) and y in (None, day.year) for d, m, y in self.dates
        )

    def holds(self, day: date) -> bool:
        """Whether the text's days include this day."""
        if self.on(day):
            return True
        if day.weekday() not in self.weekdays or (self.months and day.month not in self.months):
            return False
        last = (day + timedelta(days=7)).month != day.month
        return not self.nth or (day.day - 1) // 7 + 1 in self.nth or (last and LAST in self.nth)


@dataclass(frozen=True)
class _Words:
    """The names of days in one language; folded."""

    weekdays: Mapping[str, int]
    short: Mapping[str, int]  # abbreviations, as written: "Mo", "Sat"
    small: Mapping[str, int]  # those that count in a question without their capital
    months: Mapping[str, int]
    ordinals: Mapping[str, int]
    feasts: Mapping[str, int] = field(default_factory=dict)
    listed: Mapping[str, frozenset[str]] = field(default_factory=dict)  # the lists of days.yaml
    spaced: bool = True

    def has(self, name: str, text: str) -> bool:
        """Whether a folded text has a word of the list."""
        return _any(sorted(self.listed[name], key=len, reverse=True), self.spaced).search(text) is not None


def asked_day(question: str, now: datetime, lang: str) -> date | None:
    """The day that a question names; None without one.

    A date or a weekday is the next one of its name, including today.

    Args:
        now: in the site's time zone.
        lang: the visitor's language; the question may be in another.
    """
    for each in dict.fromkeys((lang.partition("-")[0], *sorted(spoken(question)))):
        if (words := _words(each)) and (day := _asked(question, now.date(), words)):
            return day
    return None


def with_feasts_dates(question: str, today: date, lang: str) -> str:
    """The question with the date of a feast behind its name, since pages may have the date only."""
    tag = lang.partition("-")[0]
    for each in dict.fromkeys((tag, *sorted(spoken(question)))):
        if words := _words(each):
            for feast in _feasts(_folded(question), words):
                return f"{question} {format_skeleton('MMMMd', _next(feast, today), locale=each)}"
    return question


def matching_rows(rows: Sequence[str], day: date, lang: str) -> list[int]:
    """The indexes of the rows, list items or sentences about a day. If some name its date, only those.

    Args:
        rows: plain text.
        lang: the page's language.
    """
    said = [said_days(row, lang) for row in rows]
    dated = [n for n, each in enumerate(said) if each.on(day)]
    return dated or [n for n, each in enumerate(said) if each.holds(day)]


def said_days(text: str, lang: str) -> NamedDays:
    """The days that a text names."""
    words = _words(lang.partition("-")[0]) or _words("en")
    assert words is not None
    folded = _folded(text)
    months = _months(folded, words)
    dates = frozenset(_dates(folded, words))
    weekdays = _weekdays(_dated(words).sub("", _accentless(text)), words)  # "Saturday, 9 January" is no other Saturday
    if words.has("daily", folded):
        weekdays = (ALL - weekdays) if weekdays and words.has("except", folded) else ALL
    if words.has("weekend", folded):
        weekdays |= WEEKEND
    if words.has("working", folded):
        weekdays |= WORKING
    nth = frozenset(_nth(folded, words)) if weekdays else frozenset()
    return NamedDays(frozenset(weekdays), nth, months, dates, frozenset(_feasts(folded, words)))


def _asked(question: str, today: date, words: _Words) -> date | None:
    folded = _folded(question)
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


def _small(folded: str, words: _Words) -> frozenset[int]:
    """Abbreviated weekdays in lower case."""
    return frozenset(words.small[word] for word in re.findall(r"\w+", folded) if word in words.small)


def _weekdays(text: str, words: _Words) -> frozenset[int]:
    """The weekdays in a text, including those within ranges."""
    folded = _folded(text)
    names = sorted(words.weekdays, key=len, reverse=True)
    places = [(m.start(), m.end(), words.weekdays[m.group()]) for m in _any(names, words.spaced).finditer(folded)]
    # Abbreviations depend on case, and folding moves offsets: they are searched in the unfolded text.
    if words.short:
        plain = _accentless(text)
        shorts = _any(sorted(words.short, key=len, reverse=True), words.spaced)
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


def _dated(words: _Words) -> re.Pattern[str]:
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


def _through(words: _Words) -> re.Pattern[str]:
    return _through_of(words.listed["to"])


def _joined(words: _Words) -> re.Pattern[str]:
    return _joined_of(words.listed["to"])


@cache
def _joined_of(words: frozenset[str]) -> re.Pattern[str]:
    to = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
    return re.compile(rf"\.?\s*(?:,|&|\+|{_AND}|{to})\s*")


def _months(folded: str, words: _Words) -> frozenset[int]:
    """The months of ranges such as "May to September"."""
    places = list(_any(sorted(words.months, key=len, reverse=True), words.spaced).finditer(folded))
    between: set[int] = set()
    for one, other in pairwise(places):
        gap = folded[one.end() : other.start()]
        first, last = words.months[one.group()], words.months[other.group()]
        if _through(words).fullmatch(re.sub(r"\d{1,2}\.?(?:st|nd|rd|th)?|\b(?:zum|the|dem)\b", "", gap)):
            between |= {(first - 1 + n) % 12 + 1 for n in range((last - first) % 12 + 1)}
    return frozenset(between)


def _dates(folded: str, words: _Words) -> Iterator[tuple[int, int, int | None]]:
    """The dates in a text, with their year if it is written."""
    for match in _NUMERIC.finditer(folded):
        day, month, year, iso_year, iso_month, iso_day = match.groups()
        parts = (
            (int(iso_day), int(iso_month), int(iso_year)) if iso_year else (int(day), int(month), year and int(year))
        )
        if 1 <= parts[0] <= 31 and 1 <= parts[1] <= 12:
            yield parts[0], parts[1], parts[2] or None
    for pattern in _written(tuple(words.months), frozenset(words.listed["to"])):
        for match in pattern.finditer(folded):
            last, year = int(match["day"]), int(match["year"]) if match["year"] else None
            first = int(match["first"] or last)
            for day in {*map(int, _NUMBER.findall(match["others"] or "")), *range(first, last + 1)}:
                if 1 <= day <= 31:
                    yield day, words.months[match["month"]], year


def _feasts(folded: str, words: _Words) -> Iterator[int]:
    """The feasts in a text."""
    if words.feasts:
        names = sorted(words.feasts, key=len, reverse=True)
        yield from (words.feasts[match.group()] for match in _any(names, words.spaced).finditer(folded))


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


def _nth(folded: str, words: _Words) -> Iterator[int]:
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


def _any(names: Sequence[str], spaced: bool) -> re.Pattern[str]:
    return _any_of(tuple(names), spaced)


@cache
def _any_of(names: tuple[str, ...], spaced: bool) -> re.Pattern[str]:
    either = "|".join(map(re.escape, names))
    return re.compile(rf"(?<!\w)(?:{either})(?!\w)" if spaced else either)


def _accentless(text: str) -> str:
    plain = normalized("NFKD", text)
    return unicodedata.normalize("NFC", re.sub("[\u0300-\u036f\u0591-\u05c7\u064b-\u065f]", "", plain)).replace(
        "’", "'"
    )


def _folded(text: str) -> str:
    return _accentless(text).lower()  # no casefold: it would move the places of what comes after an ß


@cache
def _words(lang: str) -> _Words | None:
    """The words of a language; None if days.yaml does not have it."""
    lists = sentences("days")
    if lang not in lists["today"]:
        return None
    try:
        locale = Locale.parse(lang)
    except (ValueError, UnknownLocaleError):
        return None
    weekdays: dict[str, int] = {}
    short: dict[str, int] = {}
    for width in ("wide", "abbreviated", "short"):
        for context in ("format", "stand-alone"):
            for n, name in locale.days[context][width].items():
                plain = _accentless(name).rstrip(".")
                if width == "wide":
                    weekdays[plain.lower()] = n
                elif plain.lower() not in weekdays and len(plain) > 1 and lang not in ("ar", "he", "th"):
                    short[plain] = n
    for n, forms in enumerate(lists["weekdays"].get(lang, "").split(",")):
        for form in map(_folded, forms.split()):
            # Names as short as abbreviations count as such: "sat" and "sun" are words too.
            if len(form) > 5 or lang in ("ar", "zh", "th", "pt"):
                weekdays[form] = n
            else:
                short[form.capitalize()] = n
    if lang in _UNSPACED:
        weekdays |= {name: n for name, n in short.items() if len(name) > 1}
        short = {}
    months = {
        _folded(name).rstrip("."): n
        for context in ("format", "stand-alone")
        for width in ("wide", "abbreviated")
        for n, name in locale.months[context][width].items()
        if len(name) > 2 or lang in _UNSPACED
    }
    ordinals = {
        _folded(form): n if n < len(named) else LAST
        for named in [lists["ordinal"].get(lang, "").split(",")]
        for n, forms in enumerate(named, 1)
        for form in forms.split()
    }
    feasts = {
        _folded(form).strip(): n
        for n, forms in enumerate(lists["feasts"].get(lang, "").split(","))
        for form in forms.split("/")
        if form.strip(" -")
    }
    names = ("today", "tomorrow", "after-tomorrow", "open", "when", "daily", "weekend", "working", "except", "to")
    listed = {name: frozenset(_folded(word).strip() for word in lists[name][lang].split(",")) for name in names}
    small = {
        form: n for n, forms in enumerate(lists["abbreviations"].get(lang, "").split(",")) for form in forms.split()
    }
    return _Words(weekdays, short, small, months, ordinals, feasts, listed, lang not in _UNSPACED)
