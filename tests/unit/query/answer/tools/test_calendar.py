"""Dates and opening hours."""

from __future__ import annotations

from datetime import UTC, date, datetime, time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.query.answer.tools.calendar import Calendar, Opening

CALENDAR = Calendar(datetime(2026, 5, 6, 14, 30, tzinfo=UTC))  # a Wednesday
WEEK = Opening(days=["monday", "tuesday", "wednesday", "thursday", "friday"], opens=time(9), closes=time(12))
AFTERNOON = Opening(days=["wednesday"], opens=time(14), closes=time(18))
NIGHT = Opening(days=["saturday"], opens=time(20), closes=time(0))
HOURS = [WEEK, AFTERNOON, NIGHT]


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("today", date(2026, 5, 6)),
        ("Tomorrow", date(2026, 5, 7)),
        ("wednesday", date(2026, 5, 6)),
        ("next Tuesday", date(2026, 5, 12)),
        ("on sunday", date(2026, 5, 10)),
        ("2027-02-28", date(2027, 2, 28)),
    ],
)
def test_a_day_is_named_in_several_ways(text: str, day: date) -> None:
    assert CALENDAR.day(text) == day


@pytest.mark.parametrize("text", ["2026-02-30", "30.02.2026", "someday", "", "next week"])
def test_what_is_no_day_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"date|day"):
        CALENDAR.day(text)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"day": "today"}, "Wednesday, 2026-05-06 (today)"),
        ({"day": "today", "add_days": 14}, "Wednesday, 2026-05-20 (in 14 days)"),
        ({"day": "today", "add_days": -1}, "Tuesday, 2026-05-05 (1 days ago)"),
        ({"day": "2026-01-31", "add_months": 1}, "Saturday, 2026-02-28 (67 days ago)"),
        ({"day": "2026-03-31", "add_months": -1}, "Saturday, 2026-02-28 (67 days ago)"),
        ({"day": "friday", "add_days": 1, "working_days": True}, "Monday, 2026-05-11 (in 5 days)"),
        ({"day": "monday", "add_days": -1, "working_days": True}, "Friday, 2026-05-08 (in 2 days)"),
    ],
)
async def test_dates_are_reckoned(arguments: dict[str, object], said: str) -> None:
    assert await CALENDAR.date_calculator(**arguments) == said  # type: ignore[arg-type]


@given(st.dates(date(1900, 1, 1), date(2100, 1, 1)), st.integers(-1200, 1200))
async def test_months_there_and_back_lose_at_most_the_end_of_a_month(day: date, months: int) -> None:
    there = (await CALENDAR.date_calculator(day.isoformat(), add_months=months)).split()[1]
    back = date.fromisoformat((await CALENDAR.date_calculator(there, add_months=-months)).split()[1])
    assert 0 <= (day - back).days <= 3


@pytest.mark.parametrize(
    ("day", "at", "said"),
    [
        ("today", None, "open on Wednesday, 2026-05-06: 09:00 to 12:00 and 14:00 to 18:00"),
        ("today", time(11, 59), "open on Wednesday, 2026-05-06 at 11:59 (09:00 to 12:00 and 14:00 to 18:00)"),
        (
            "today",
            time(12),
            "closed on Wednesday, 2026-05-06 at 12:00 (09:00 to 12:00 and 14:00 to 18:00 on that day); "
            "opens next on Wednesday, 2026-05-06, at 14:00",
        ),
        (
            "friday",
            time(13),
            "closed on Friday, 2026-05-08 at 13:00 (09:00 to 12:00 on that day); "
            "opens next on Saturday, 2026-05-09, at 20:00",
        ),
        ("saturday", time(23, 59), "open on Saturday, 2026-05-09 at 23:59 (20:00 to 00:00)"),
        ("sunday", None, "closed on Sunday, 2026-05-10; opens next on Monday, 2026-05-11, at 09:00"),
    ],
)
async def test_opening_hours_are_worked_out(day: str, at: time | None, said: str) -> None:
    assert await CALENDAR.opening_hours(HOURS, day, at) == said


async def test_a_holiday_is_closed() -> None:
    thursday = date(2026, 5, 14)
    assert await CALENDAR.opening_hours([WEEK], thursday.isoformat(), closed_on=[thursday]) == (
        "closed on Thursday, 2026-05-14; opens next on Friday, 2026-05-15, at 09:00"
    )
    never = Opening(days=["thursday"], opens=time(9), closes=time(10))
    both = [thursday, date(2026, 5, 21)]
    assert "do not give" in await CALENDAR.opening_hours([never], thursday.isoformat(), closed_on=both)
