"""Derived figures: what follows from a passage's figures by one step of arithmetic, as a model works it out.

12 euros, 5 euros ─▶ 17 and 7 euros            90 euros, half ─▶ 45 euros, and 135 for both
90 euros, ten lessons ─▶ 9 euros               14:30, ninety minutes ─▶ 16:00
7:30, 13:00 ─▶ five and a half hours           12 March, three days ─▶ 9 and 15 March
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from itertools import permutations, product

from text.figures import DAY, NOON, Date, Figure

MOST = 12  # values that are reckoned with: of more, nearly everything follows
MONTHS = Fraction(12)  # of a year
PER_CENT = 100
SOME_YEAR = 2027  # of a date without one


@dataclass(frozen=True)
class Derivation:
    """How a figure follows. `by`: the number that another one is multiplied with or divided by, where there is one."""

    by: Fraction | None = None


def derived(claimed: Figure, given: Collection[Figure], beside: Iterable[Figure] = ()) -> Derivation | None:
    """How a figure follows from others; None: it does not.

    Args:
        given: figures of a passage.
        beside: figures of the sentence and of the question, which may say how often: two adults pay.
    """
    if claimed.kind == "date":
        return Derivation() if claimed.dates & frozenset(_dates(given)) else None
    if claimed.kind == "time" or (claimed.spelled and claimed.unit is None):
        return Derivation() if claimed.times & frozenset(_times(given)) else None
    if claimed.kind != "number" or claimed.unit is None:
        return None
    wanted = {number * claimed.unit.factor for number in claimed.numbers if number}
    match claimed.family:
        case "price":
            return _price(wanted, claimed, given, tuple(beside))
        case "minute":
            return Derivation() if wanted & frozenset(_between(given)) else None
        case "percent":  # who gets 30 % off pays 70 %
            return Derivation() if {1 - share for share in _shares(given)} & {n / PER_CENT for n in wanted} else None
    return None


def _price(
    wanted: set[Fraction], claimed: Figure, given: Collection[Figure], beside: Collection[Figure]
) -> Derivation | None:
    prices = {
        number * each.unit.factor for each in given if each.unit and _alike(each, claimed) for number in each.numbers
    }
    prices.discard(Fraction(0))
    shares = _shares([*given, *beside])
    if not prices or max(len(prices), len(shares)) > MOST:
        return None
    often = _counts(beside)
    among = often | _counts(given)
    for price, price_wanted in product(prices, wanted):
        if (count := price_wanted / price) in often or count == MONTHS:
            return Derivation(count)
        if (count := price / price_wanted) in among:
            return Derivation(count)
    parts = {price * part for price in prices for share in shares for part in (share, 1 - share)}
    terms = prices | parts
    # A term is not added to itself.
    sums = any(each - one in terms - {one} or each + one in terms for each in wanted for one in terms)
    return Derivation() if parts & wanted or sums else None


def _alike(one: Figure, other: Figure) -> bool:
    return bool(one.unit and other.unit and one.unit.base & other.unit.base)


def _shares(given: Iterable[Figure]) -> set[Fraction]:
    return {number / PER_CENT for each in given if each.family == "percent" for number in each.numbers}


def _counts(given: Iterable[Figure]) -> set[Fraction]:
    """Numbers of anything but prices and shares."""
    return {n for each in given if each.family not in ("price", "percent") for n in each.numbers if n > 1}


def _lasting(given: Iterable[Figure]) -> set[int]:
    """Minutes."""
    long = {
        number * each.unit.factor for each in given if each.unit and each.family == "minute" for number in each.numbers
    }
    return {int(minutes) for minutes in long if minutes}


def _at(given: Iterable[Figure]) -> set[int]:
    return {minute for each in given if each.kind == "time" or each.unit for minute in each.times}


def _times(given: Collection[Figure]) -> Iterator[int]:
    """Times of day that are a duration before or after those given, as a clock of 12 or of 24 hours has them."""
    at, long = _at(given), {minutes for minutes in _lasting(given) if minutes < NOON}
    if len(at) <= MOST and len(long) <= MOST:
        for minutes in {time + sign * lasts for time in at for lasts in long for sign in (1, -1)}:
            yield from (minutes % DAY, (minutes + NOON) % DAY)


def _between(given: Collection[Figure]) -> Iterator[Fraction]:
    at = _at(given)
    if len(at) <= MOST:
        yield from (Fraction(later - earlier) for earlier, later in permutations(at, 2) if later > earlier)


def _dates(given: Collection[Figure]) -> Iterator[Date]:
    """Days so many days before or after those that are given, as far as they say."""
    days = {day for each in given if each.kind == "date" for day in each.dates if day[1] and day[2]}
    long = {minutes // DAY for minutes in _lasting(given) if minutes >= DAY}
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
