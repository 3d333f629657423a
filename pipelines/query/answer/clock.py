"""Clock: what time it is where a site is. Benchmarks and tests ask on a day of their choice."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from pipelines.runtime.errors import SettingsError

Clock = Callable[[ZoneInfo], datetime]  # the time there


class FileClock:
    """Stands still at the time that a file names, as ISO 8601, and moves when the file is written again.

    Only who may write on the machine sets it: no visitor can tell us what day it is. Read for every answer, on the
    loop: it is one line, and not there in production.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def now(self, zone: ZoneInfo) -> datetime:
        """The file's time; where it names no zone, it is that of the site. An empty file is the machine's clock.

        Raises: SettingsError: there is no such file, or no time in it.
        """
        try:
            said = self._path.read_text(encoding="utf-8").strip()
            then = datetime.fromisoformat(said) if said else datetime.now(zone)
        except (OSError, ValueError) as err:
            raise SettingsError(f"clock: {self._path}: {err}") from err
        return then.astimezone(zone) if then.tzinfo else then.replace(tzinfo=zone)


def clock_of(path: Path | None) -> Clock:
    return FileClock(path).now if path else datetime.now
