"""Calendar: dates and opening hours, which models get wrong when they reckon by themselves."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, Field

Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
WEEKDAYS: tuple[Weekday, ...] = get_args(Weekday)
MOST_DAYS = 36_600  # a hundred years
LOOK_AHEAD = 7  # days

Day = Annotated[
    str, Field(description="A date as YYYY-MM-DD, or today, tomorrow, or an English weekday: the next such day.")
]


class Opening(BaseModel):
    """On these days it is open between these times."""

    days: list[Weekday] = Field(min_length=1)
    opens: time = Field(description="HH:MM")
    closes: time = Field(description="HH:MM; 00:00 is midnight at the end of the day")

    def holds(self, day: date) -> bool:
        return WEEKDAYS[day.weekday()] in self.days

    @property
    def until(self) -> time:
        return self.closes if self.closes > time(0) else time.max

    def __str__(self) -> str:
        return f"{self.opens:%H:%M} to {self.closes:%H:%M}"


class Calendar:
    """Tools that need to know what time it is: the site's, not the server's."""

    def __init__(self, now: datetime) -> None:
        self._now = now

    def day(self, text: str) -> date:
        """The date that is meant; weekdays count from today on. Raises: ValueError."""
        word = text.strip().casefold()
        today = self._now.date()
        if word in ("today", "tomorrow"):
            return today + timedelta(days=word == "tomorrow")
        name = word.removeprefix("next ").removeprefix("on ")
        if name in WEEKDAYS:
            return today + timedelta(days=(WEEKDAYS.index(name) - today.weekday()) % 7)
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", word):
            return date.fromisoformat(word)
        raise ValueError(f"{text!r} is no date: write YYYY-MM-DD, today, tomorrow or an English weekday")

    async def date_calculator(
        self,
        day: Day,
        add_days: Annotated[int, Field(ge=-MOST_DAYS, le=MOST_DAYS, description="Days later; negative: earlier.")] = 0,
        add_months: Annotated[int, Field(ge=-1200, le=1200, description="Months later; negative: earlier.")] = 0,
        working_days: Annotated[bool, Field(description="Count add_days from Monday to Friday only.")] = False,
    ) -> str:
        """Says which date and weekday it is a number of days or months after (or before) a day, and how far off."""
        found = _months_later(self.day(day), add_months)
        found = _working_days_later(found, add_days) if working_days else found + timedelta(days=add_days)
        away = (found - self._now.date()).days
        off = "today" if away == 0 else f"in {away} days" if away > 0 else f"{-away} days ago"
        return f"{found:%A}, {found.isoformat()} ({off})"

    async def opening_hours(
        self,
        hours: Annotated[
            list[Opening], Field(min_length=1, description="The weekly opening hours, as the sources give them.")
        ],
        day: Day,
        at: Annotated[time | None, Field(description="Time of day HH:MM, if one was asked about.")] = None,
        closed_on: Annotated[Sequence[date], Field(description="Dates YYYY-MM-DD on which it is closed.")] = (),
    ) -> str:
        """Works out from weekly opening hours whether a place is open on a day or at a time, and if not, when next."""
        asked = self.day(day)
        named = f"{asked:%A}, {asked.isoformat()}"
        open_then = [] if asked in closed_on else sorted((o for o in hours if o.holds(asked)), key=lambda o: o.opens)
        if at is not None and any(o.opens <= at < o.until for o in open_then):
            return f"open on {named} at {at:%H:%M} ({' and '.join(map(str, open_then))})"
        if at is None and open_then:
            return f"open on {named}: {' and '.join(map(str, open_then))}"
        later = _opens_next(hours, closed_on, asked, at)
        when = "" if at is None else f" at {at:%H:%M}"
        today = f" ({' and '.join(map(str, open_then))} on that day)" if open_then else ""
        return f"closed on {named}{when}{today}; opens next {later}"


def _opens_next(hours: Sequence[Opening], closed_on: Sequence[date], asked: date, at: time | None) -> str:
    for ahead in range(LOOK_AHEAD + 1):
        day = asked + timedelta(days=ahead)
        times = sorted(o.opens for o in hours if o.holds(day) and day not in closed_on)
        if ahead == 0:
            times = [opens for opens in times if at is not None and opens > at]
        if times:
            return f"on {day:%A}, {day.isoformat()}, at {times[0]:%H:%M}"
    return "at a time that these hours do not give"


def _months_later(day: date, months: int) -> date:
    """The same day of the month, or the last one where the month is shorter. Raises: ValueError: out of range."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        raise ValueError("that is outside of the calendar")
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def _working_days_later(day: date, count: int) -> date:
    step = timedelta(days=1 if count > 0 else -1)
    for _ in range(abs(count)):
        day += step
        while day.weekday() >= 5:
            day += step
    return day
