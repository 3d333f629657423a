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
    if match := re.fullmatch(r"(\d{1,5})([mhd])", text):
        return datetime.now(UTC) - timedelta(**{UNITS[match[2]]: int(match[1])})
    try:
        return datetime.fromisoformat(text).astimezone()  # without an offset: this machine's time
    except (ValueError, OverflowError):
        raise WrongUse(f"{option} {text!r}: 30m, 2h, 3d or an ISO 8601 time") from None
