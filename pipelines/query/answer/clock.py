"""Clock: what time it is where a site is. Benchmarks and tests ask on a day of their choice."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from pipelines.runtime.errors import SettingsError

Clock = Callable[[ZoneInfo], datetime]  # the time there


def clock_of(path: Path | None) -> Clock:
    """The machine's, or one that stands still at the time that a file names, as ISO 8601, until it is written again.

    Only who may write on the machine sets it: no visitor can tell us what day it is. Read for every answer, on the
    loop: it is one line, and not there in production. Where the file names no zone, its time is that of the site; an
    empty file is the machine's clock.
    """
    if path is None:
        return datetime.now

    def filed(zone: ZoneInfo) -> datetime:
        """Raises: SettingsError: there is no such file, or no time in it."""
        try:
            said = path.read_text(encoding="utf-8").strip()
            then = datetime.fromisoformat(said) if said else datetime.now(zone)
        except (OSError, ValueError) as err:
            raise SettingsError(f"clock: {path}: {err}") from err
        return then.astimezone(zone) if then.tzinfo else then.replace(tzinfo=zone)

    return filed
