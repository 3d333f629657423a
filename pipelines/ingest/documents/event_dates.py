"""Writes when an event is, in the language of its page, and compares it with the dates that the page shows."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, time, timedelta

from babel import Locale
from babel.dates import format_date

from schemas.page import PageEvent
from text.figures import Figure

_NIGHT = timedelta(hours=18)  # an event that ends within it, on the next day, is one of a night


def is_on(shown: Iterable[Figure], event: PageEvent) -> bool:
    """Whether a date that the page shows is the event's first or last day."""
    days = filter(None, map(_read, (event.start, event.end)))
    told = [Figure("date", 0, 0, dates=frozenset({(day.year, day.month, day.day)})) for day in days]
    return any(figure.kind == "date" and figure.bears(one) for figure in shown for one in told)


def written(event: PageEvent, locale: Locale, *, with_time: bool) -> str:
    """The event's day and hours, or its first and last day; empty if its local time is not certain.

    Many systems write their own clock as UTC. Midnight stands for a whole day.
    """
    start, end = _local(event.start), _local(event.end)
    if start is None:
        return ""
    if end is not None and end.date() > start.date() and end - start > _NIGHT:
        return f"{_day(start, locale)} – {_day(end, locale)}"
    day = _day(start, locale)
    if not with_time or start.time() == time():
        return day
    closes = f"–{end:%H:%M}" if end is not None and end > start else ""
    return f"{day}, {start:%H:%M}{closes}"


def _local(said: str | None) -> datetime | None:
    """As clocks show it there; None: there is none, or it is of UTC."""
    at = _read(said)
    return None if at is None or at.utcoffset() == timedelta() else at.replace(tzinfo=None)


def _read(said: str | None) -> datetime | None:
    """None: there is none, or a CMS has sent a day that no calendar has."""
    with suppress(ValueError):
        return datetime.fromisoformat(said or "")
    return None


def _day(at: datetime, locale: Locale) -> str:
    return format_date(at.date(), "full", locale=locale)
