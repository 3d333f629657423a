"""Days as filters have them: from midnight to midnight, by some clock."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo


def day_of(given: str, name: str, wrong: list[str]) -> date | None:
    """The day that a form gives, None for an empty field; the name of what is no day goes to `wrong`."""
    try:
        return date.fromisoformat(given) if given else None
    except ValueError:
        wrong.append(name)
        return None


def midnight(day: date | None, zone: ZoneInfo, *, days: int = 0) -> datetime | None:
    """When the day begins in this zone, or the one so many days later."""
    if day is None or day.year in (1, 9999):  # the ends of the calendar have no neighbours
        return None
    return datetime.combine(day + timedelta(days=days), time(), zone).astimezone(UTC)
