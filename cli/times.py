"""Points in time, as people write them on a command line."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from pipelines.runtime.errors import WrongUse

UNITS = {"m": "minutes", "h": "hours", "d": "days"}


def point(option: str, text: str | None) -> datetime | None:
    """`30m`, `2h` or `3d` ago, or an ISO 8601 time; None where nothing is said. Raises: WrongUse: names the option."""
    if text is None:
        return None
    if (span := _span(text)) is not None:
        return datetime.now(UTC) - span
    return _moment(option, text)


def point_ahead(option: str, text: str | None) -> datetime | None:
    """`30m`, `2h` or `90d` from now, or an ISO 8601 time to come; None where nothing is said.

    Raises:
        WrongUse: names the option.
    """
    if text is None:
        return None
    span, now = _span(text), datetime.now(UTC)
    ahead = now + span if span is not None else _moment(option, text)
    if ahead <= now:
        raise WrongUse(f"{option} {text!r} lies in the past")
    return ahead


def _span(text: str) -> timedelta | None:
    match = re.fullmatch(r"(\d{1,5})([mhd])", text)
    return timedelta(**{UNITS[match[2]]: int(match[1])}) if match else None


def _moment(option: str, text: str) -> datetime:
    try:
        return datetime.fromisoformat(text).astimezone()  # without an offset: this machine's time
    except (ValueError, OverflowError):
        raise WrongUse(f"{option} {text!r}: 30m, 2h, 3d or an ISO 8601 time") from None
