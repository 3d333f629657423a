"""Clock: the time in a site's zone. Benchmarks set a fixed time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import structlog

from pipelines.runtime.errors import SettingsError

log = structlog.get_logger(__name__)

Clock = Callable[[ZoneInfo], datetime]  # the time there
CLOCK = "clock"  # a file in `home`


def clock_of(home: Path) -> Clock:
    """The machine's clock, or one that shows the time in the file `clock` (ISO 8601) if that exists at the start.

    The time comes from a file, so that no visitor can set it. The file is read for every answer, on the event loop: it
    has one line, and does not exist in production. A time without a zone is in the site's zone; an empty file means the
    machine's clock.
    """
    path = home / CLOCK
    if not path.exists():
        return datetime.now
    log.warning("answers take the time in this file for now", path=str(path))

    def filed(zone: ZoneInfo) -> datetime:
        """Raises: SettingsError: the file is missing, or has no time."""
        try:
            said = path.read_text(encoding="utf-8").strip()
            then = datetime.fromisoformat(said) if said else datetime.now(zone)
        except (OSError, ValueError) as err:
            raise SettingsError(f"clock: {path}: {err}") from err
        return then.astimezone(zone) if then.tzinfo else then.replace(tzinfo=zone)

    return filed
