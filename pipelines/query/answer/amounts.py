"""Amounts that a text gives without a figure, and the words before a figure that is not exact.

    "pay nothing", "exempt" ─▶ a price of 0        "a week", "half an hour" ─▶ 7 days, 30 minutes
    "about 48,000"          ─▶ supported by 48,250  "up to 5" ─▶ supported by "under 6"

The words are in prompts/amounts.yaml.
"""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache

from prompts.loader import table
from text.figures import DAY, NOON, Figure
from text.measures import CURRENCIES, MeasureUnit, measures

FREE = "free"  # `said` of a price of 0 that is given without a figure
ROUNDED = Fraction(1, 20)  # greatest distance of a rounded figure from the exact one, as a share of the greater one
ROUNDED_MONTHS = Fraction(1, 10)  # the same for months given in weeks or days
MONTH = Fraction(365, 12) * DAY  # minutes, on average
BEFORE = 24  # characters before a figure that are searched for words about it
GAP = 60  # characters between the parts of a phrase

HALF = Fraction(1, 2)
HOURS = 24  # of a day

_ANY_PRICE = MeasureUnit(frozenset(CURRENCIES))
_LONG = {"month", "minute"}
_DOTTED = re.compile(r"([01]?\d|2[0-3])\.([0-5]\d)")
_NEXT_WORD = re.compile(r"[ \u00a0]?([^\W\d_]+)")
_CENTS = re.compile(r"[ \u00a0]")


def unfigured(text: str, langs: Sequence[str], taken: Sequence[Figure]) -> Iterator[Figure]:
    """Amounts that the text gives without a figure. Uncertain ones are `vague`: they are not checked."""
    covered = sorted((each.start, each.end) for each in taken)
    for phrases, vague in (("free", False), ("free-perhaps", True)):
        for match in _pattern(phrases, tuple(langs)).finditer(text):
            # In "pay for a card nothing" the last word counts, in "no charge" both do.
            start = match.start(match.lastindex) if match.lastindex else match.start()
            if _open(start, match.end(), covered):
                insort(covered, (start, match.end()))
                yield Figure(
                    "number",
                    start,
                    match.end(),
                    numbers=frozenset([Fraction(0)]),
                    unit=_ANY_PRICE,
                    said=FREE,
                    vague=vague,
                )
    for match in _pattern("parts", tuple(langs)).finditer(text):
        number, unit = _parts(tuple(langs))[" ".join(match.group().casefold().split())]
        more = _ends("and-half", tuple(langs), text[max(0, match.start() - BEFORE) : match.end()])
        if not more and _open(match.start(), match.end(), covered):
            insort(covered, match.span())
            yield Figure(
                "number", *match.span(), numbers=frozenset([number]), unit=unit, vague=unit.base == {"percent"}
            )
    for match in _pattern("one", tuple(langs)).finditer(text):
        word = _NEXT_WORD.match(text, match.end())
        one = next(filter(None, (measures(lang).unit(word[1]) for lang in langs)), None) if word else None
        if word and one and not one.base & _ANY_PRICE.base and _open(match.start(), word.end(), covered):
            insort(covered, (match.start(), word.end()))
            counted = Figure("number", match.start(), word.end(), numbers=frozenset([Fraction(1)]), unit=one)
            made = _measured(text, counted, tuple(langs))
            yield replace(made, vague=made.end == word.end())


def spelled(text: str, found: Sequence[Figure], langs: Sequence[str]) -> Iterator[Figure]:
    """The figures, extended by the words around them: `two euros fifty` is one price, `half past six` a time of day."""
    price: Figure | None = None
    for each in (_measured(text, figure, tuple(langs)) for figure in found):
        counted = each.spelled and each.unit is None
        if price and counted and _CENTS.fullmatch(text, price.end, each.start):
            numbers = frozenset(whole + part / 100 for whole in price.numbers for part in each.numbers)
            yield replace(price, end=each.end, numbers=numbers)
            price = None
            continue
        if price:
            yield price
        price = each if each.spelled and each.family == "price" else None
        if price is None:
            yield _clock(text, each, tuple(langs))
    if price:
        yield price


def _measured(text: str, figure: Figure, langs: tuple[str, ...]) -> Figure:
    """The figure, extended by the words behind it: 50 cents are a price, an hour and a half are ninety minutes."""
    if figure.kind != "number":
        return figure
    behind = text[figure.end : figure.end + BEFORE].casefold()
    if figure.unit and behind.startswith(_phrases("old", langs)):  # "a ten-year-old" is an example
        return replace(figure, vague=True)
    name = "units" if figure.unit is None else "and-half"
    match = _pattern(name, langs).match(text, figure.end) or _pattern(name, langs).match(text, figure.end + 1)
    if figure.unit is None and (more := _pattern("and-half", langs).match(text, figure.end + 1)):  # and a half hours
        word = _NEXT_WORD.match(text, more.end())
        if unit := next(filter(None, (measures(lang).unit(word[1]) for lang in langs)), None) if word else None:
            numbers = frozenset(number + HALF for number in figure.numbers)
            return replace(
                figure, end=word.end() if word else more.end(), numbers=numbers, unit=unit, times=frozenset()
            )
    if match and figure.unit is None:
        factor, unit = _parts(langs, "units")[match.group().casefold()]
        unit = replace(_ANY_PRICE if unit.base == {"price"} else unit, factor=factor)
        return replace(figure, end=match.end(), unit=unit, times=frozenset())
    if match:
        figure = replace(figure, end=match.end(), numbers=frozenset(number + HALF for number in figure.numbers))
    if _ends("hours", langs, text[figure.start : match.start() if match else figure.end]):  # sept heures et demie
        minutes = {int(number * 60) for number in figure.numbers if number <= DAY // 60}
        return replace(figure, times=frozenset(at % DAY for m in minutes for at in (m, m + NOON * (m <= NOON))))
    return figure


def _clock(text: str, figure: Figure, langs: tuple[str, ...]) -> Figure:
    """A time of day, if words for one precede the number. If its minutes are unknown, it is vague."""
    if figure.kind != "number":
        return figure
    before = text[max(0, figure.start - BEFORE) : figure.start]
    hour = max(figure.numbers)
    dotted = _DOTTED.fullmatch(text, figure.start, figure.end)  # at 4.30
    if dotted:
        hour = Fraction(dotted[1]) + Fraction(int(dotted[2]), 60)
    if figure.unit or (hour.denominator > 1 and not dotted) or hour > HOURS or not _ends("clock", langs, before):
        return figure
    said = f" {before.casefold().rstrip()}"
    offset = next((n for phrase, (n, _) in _parts(langs, "past").items() if said.endswith(f" {phrase}")), None)
    half = _pattern("and-half", langs).match(text, figure.end + 1)
    if offset is None or (figure.spelled and not half and _pattern("past-more", langs).match(text, figure.end + 1)):
        return replace(figure, vague=figure.spelled)
    at = int(hour * 60 + offset + 30 * (half is not None))
    times = frozenset((at % DAY, (at + NOON) % DAY) if at <= NOON else (at % DAY,))
    return replace(figure, kind="time", times=times, end=half.end() if half else figure.end)


def is_rounded(claimed: Figure, text: str, langs: Sequence[str]) -> bool:
    """Whether a word before the figure marks it as rounded: about 48,000."""
    return _ends("about", tuple(langs), text[max(0, claimed.start - BEFORE) : claimed.start])


def nearly(claimed: Figure, text: str, langs: Sequence[str], others: Iterable[Figure], other_text: str) -> bool:
    """Whether figures support one that is rounded, or a limit given by the next one: under 6 is up to 5.

    Args:
        text: of the claimed figure.
        others: figures of a passage's sentence, `other_text`.
    """
    if claimed.kind != "number":
        return False
    before = text[max(0, claimed.start - BEFORE) : claimed.start]
    about, under, to = (
        is_rounded(claimed, text, langs),
        *(_ends(name, tuple(langs), before) for name in ("under", "to")),
    )
    if not (about or under or to):
        return False
    for other in others:
        if other.kind != "number" or not (_comparable(claimed, other) or {claimed.family, other.family} == _LONG):
            continue
        rounded = ROUNDED if _comparable(claimed, other) else ROUNDED_MONTHS
        if about and any(abs(a - b) <= rounded * max(a, b) for a in _values(claimed) for b in _values(other)):
            return True
        there = other_text[max(0, other.start - BEFORE) : other.start]
        step = (
            1 if to and _ends("under", tuple(langs), there) else -1 if under and _ends("to", tuple(langs), there) else 0
        )
        if step and any(number + step in other.numbers for number in claimed.numbers):
            return True
    return False


def before(text: str, figure: Figure, langs: Sequence[str]) -> bool:
    """Whether a duration ends at an event: an hour before it closes."""
    return bool(_pattern("before", tuple(langs)).match(text, figure.end + 1))


def of_part_of_day(words: str, langs: Sequence[str]) -> bool:
    return bool(_pattern("day-part", tuple(langs)).search(words))


@cache
def paying(langs: tuple[str, ...]) -> frozenset[str]:
    """Words of paying, which do not name what a price is for."""
    return frozenset(_phrases("pay", langs))


def limits(words: str, langs: Sequence[str]) -> bool:
    """Whether a clause has words such as "more than": with a negation they make a limit."""
    return bool(_pattern("more", tuple(langs)).search(words))


def _open(start: int, end: int, covered: Sequence[tuple[int, int]]) -> bool:
    """Whether the range overlaps none of the covered ones, which are sorted and disjoint."""
    behind = bisect_left(covered, (end, 0))
    return behind == 0 or covered[behind - 1][1] <= start


def _comparable(one: Figure, other: Figure) -> bool:
    return one.unit is None or other.unit is None or bool(one.unit.base & other.unit.base)


def _values(figure: Figure) -> Iterator[Fraction]:
    factor = (figure.unit.factor if figure.unit else 1) * (MONTH if figure.family == "month" else 1)
    return (number * factor for number in figure.numbers)


@cache
def _phrases(name: str, langs: tuple[str, ...]) -> tuple[str, ...]:
    said = table("amounts")
    lines = (said.get(f"{name}.{lang.partition('-')[0]}", "") for lang in langs)
    return tuple(phrase for line in lines for each in line.split(",") if (phrase := each.strip()))


@cache
def _endings(name: str, langs: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f" {phrase}" for phrase in _phrases(name, langs))


@cache
def _parts(langs: tuple[str, ...], name: str = "parts") -> dict[str, tuple[Fraction, MeasureUnit]]:
    found = {}
    for phrase in _phrases(name, langs):
        said, _, meant = phrase.partition("=")
        number, unit = meant.split()
        found[said.strip()] = (Fraction(number), MeasureUnit(frozenset([unit])))
    return found


@cache
def _pattern(name: str, langs: tuple[str, ...]) -> re.Pattern[str]:
    """Matches any of the phrases, the longest first; the last part of a phrase with a gap is a group."""
    phrases = [phrase.partition("=")[0].strip() for phrase in _phrases(name, langs)]
    made = []
    for phrase in sorted(phrases, key=len, reverse=True):
        parts = [r"\s".join(map(re.escape, part.split())) for part in phrase.split("~")]
        made.append(parts[0] if len(parts) == 1 else rf"{parts[0]}\b[^.,;:!?]{{0,{GAP}}}?\b({parts[1]})")
    return re.compile(rf"(?<![\w-])(?:{'|'.join(made) or '(?!)'})(?![\w-])", re.IGNORECASE)


def _ends(name: str, langs: tuple[str, ...], before: str) -> bool:
    """Whether the text before a figure ends with one of the phrases."""
    return (" " + before.casefold().rstrip(" .(\u00a0")).endswith(_endings(name, langs))
