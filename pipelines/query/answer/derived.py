"""Derived figures: results of one step of arithmetic with a passage's figures, as models compute them.

12 euros, 5 euros ─▶ 17 and 7 euros            90 euros, half ─▶ 45 euros, and 135 for both
90 euros, ten lessons ─▶ 9 euros               14:30, ninety minutes ─▶ 16:00
7:30, 13:00 ─▶ five and a half hours           12 March, three days ─▶ 9 and 15 March
Monday to Saturday ─▶ six days                 April to September ─▶ July
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import date, timedelta
from fractions import Fraction
from functools import cached_property
from itertools import pairwise, permutations, product

from pipelines.query.answer.amounts import before
from pipelines.query.answer.claims import Passage, Sentence
from text.figures import DAY, NOON, Date, Figure, weekdays_between

MOST = 12  # values to combine: from more values nearly every figure can be derived
YEAR = Fraction(12)  # months
PER_CENT = 100
WEEK = 7  # days
SOME_YEAR = 2027  # of a date without one


class Derivations:
    """The figures of one sentence that can be derived from the passages' figures.

    Args:
        passages: the evidence.
        said, asked: figures of the sentence and of the question, which may be factors: two adults pay.
        langs: languages of the passages.
    """

    def __init__(
        self, passages: Sequence[Passage], said: Sequence[Figure], asked: Sequence[Figure], langs: tuple[str, ...]
    ) -> None:
        self._passages = passages
        self._said, self._asked = said, asked
        self._langs = langs

    # Most sentences have no derived figure, so everything is computed on demand.
    @cached_property
    def _sentences(self) -> list[Sentence]:
        return [sentence for passage in self._passages for sentence in passage.sentences]

    @cached_property
    def _given(self) -> list[Figure]:
        return [figure for passage in self._passages for figure in passage.figures]

    @cached_property
    def _beside(self) -> list[Figure]:
        return [*self._said, *self._asked]

    def factors(self, claimed: Figure) -> frozenset[Fraction] | None:
        """The factors by which the figure is derived from another; empty: derived without one; None: not derived."""
        if claimed.kind == "date":
            return self._without_factor(claimed.dates & frozenset(self._dates()) or self._in_season(claimed))
        if claimed.kind == "time" or (claimed.spelled and claimed.unit is None and claimed.times):
            return self._without_factor(claimed.times & frozenset(self._times()))
        if claimed.kind != "number" or not _value(claimed):
            return None
        match claimed.family:
            case "price":
                return self._price(claimed)
            case "minute":
                return self._without_factor(
                    _value(claimed) in {*self._between(), *self._days_a_week()} or self._ratio(claimed)
                )
            case "month":
                return self._without_factor(self._ratio(claimed))
            case "percent":  # 30 % off leaves 70 %
                return self._without_factor(1 - _value(claimed) / PER_CENT in _shares(self._given))
            case "number":
                return self._without_factor(self._number(_value(claimed)))
        return None

    @staticmethod
    def _without_factor(follows: object) -> frozenset[Fraction] | None:
        return frozenset() if follows else None

    def _price(self, claimed: Figure) -> frozenset[Fraction] | None:
        wanted, prices = _value(claimed), self._prices(claimed)
        shares = _shares([*self._given, *self._beside])
        often = _counts(self._beside)
        among = often | _counts(self._given)
        if not prices or max(len(prices), len(shares), len(often)) > MOST:
            return None
        counts = {wanted / price for price in prices} & {*often, YEAR} | {price / wanted for price in prices} & among
        parts = {price * part for price, share in product(prices, shares) for part in (share, 1 - share)}
        terms = prices | parts | {price * count for price, count in product(prices, {*often, YEAR})}
        # A term is not added to itself.
        sums = any(wanted - one in terms - {one} or wanted + one in terms for one in terms)
        return frozenset(counts) if counts or sums or wanted in parts else None

    def _prices(self, claimed: Figure) -> set[Fraction]:
        alike = (each for each in self._given if each.unit and claimed.unit and each.unit.base & claimed.unit.base)
        return {value for each in alike if (value := _value(each))}

    def _ratio(self, claimed: Figure) -> bool:
        """A ticket for a year costs that of ten months."""
        prices = {value for each in self._given if each.family == "price" and (value := _value(each))}
        return len(prices) <= MOST and any(a == b * max(claimed.numbers) for a, b in permutations(prices, 2))

    def _number(self, wanted: Fraction) -> bool:
        """90 more than 150 are 240. Small numbers could be derived from nearly all others, so they do not count."""
        others = {value for each in self._given if each.family == "number" and (value := _value(each))}
        return (
            wanted > MOST
            and len(others) <= MOST
            and any(a - b == wanted or a == b * wanted for a, b in permutations(others, 2))
        )

    def _durations(self, given: Iterable[Figure]) -> set[int]:
        """Minutes."""
        return {int(_value(each)) for each in given if each.family == "minute"}

    def _times(self) -> Iterator[int]:
        """Times of day: a duration before another time, or the end of an event with a start and a duration."""
        at = _times_of(self._given)
        for sentence in self._sentences:
            lasts = [each for each in sentence.figures if each.family == "minute" and 0 < _value(each) < NOON]
            ahead = [each for each in lasts if before(sentence.text, each, self._langs)]
            for sign, times, long in ((-1, at, ahead), (1, _times_of(sentence.figures), lasts)):
                if len(times) <= MOST and len(long) <= MOST:
                    for minutes in {time + sign * int(_value(each)) for time, each in product(times, long)}:
                        yield from (minutes % DAY, (minutes + NOON) % DAY)

    def _between(self) -> Iterator[Fraction]:
        at = _times_of(self._given)
        if len(at) <= MOST:
            yield from (Fraction(later - earlier) for earlier, later in permutations(at, 2) if later > earlier)

    def _days_a_week(self) -> Iterator[Fraction]:
        """The number of named days of the week, and of the others: closed on Mondays leaves six."""
        days = len({day for each in self._sentences for day in weekdays_between(each.figures, each.text)})
        yield from (Fraction(DAY * days), Fraction(DAY * (WEEK - days)))

    def _dates(self) -> Iterator[Date]:
        """Dates a given number of days before or after a given date."""
        days = {day for each in self._given if each.kind == "date" for day in each.dates if day[1] and day[2]}
        long = {minutes // DAY for minutes in self._durations(self._given) if minutes >= DAY}
        if len(days) > MOST or len(long) > MOST:
            return
        for year, month, day in days:
            try:
                known = date(year or SOME_YEAR, month or 1, day or 1)
                found = [known + timedelta(sign * each) for each in long for sign in (1, -1)]
            except (ValueError, OverflowError):
                continue
            for each in found:
                yield from ((each.year, each.month, each.day), (None, each.month, each.day))

    def _in_season(self, claimed: Figure) -> bool:
        """Whether a month is between two months that are named in succession."""
        wanted = {month for year, month, day in claimed.dates if month and not day and not year}
        named = [min(month for _, month, _ in each.dates if month) for each in self._given if _month_alone(each)]
        return any((month - begin) % 12 <= (end - begin) % 12 for begin, end in pairwise(named) for month in wanted)


def _value(figure: Figure) -> Fraction:
    """In base units; the greatest reading of the number."""
    return max(figure.numbers, default=Fraction(0)) * (figure.unit.factor if figure.unit else 1)


def _shares(given: Iterable[Figure]) -> set[Fraction]:
    return {_value(each) / PER_CENT for each in given if each.family == "percent"}


def _counts(given: Iterable[Figure]) -> set[Fraction]:
    """Counts: numbers greater than 1 that are neither prices nor shares."""
    return {n for each in given if each.family not in ("price", "percent") for n in each.numbers if n > 1}


def _times_of(given: Collection[Figure]) -> set[int]:
    return {minute for each in given if each.kind == "time" or each.unit for minute in each.times}


def _month_alone(figure: Figure) -> bool:
    return figure.kind == "date" and any(month and not day for _, month, day in figure.dates)
