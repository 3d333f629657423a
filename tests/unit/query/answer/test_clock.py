"""What time it is where a site is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from pipelines.query.answer.clock import clock_of
from pipelines.runtime.errors import SettingsError

BERLIN = ZoneInfo("Europe/Berlin")


def test_a_file_says_what_time_it_is_there(tmp_path: Path) -> None:
    file = tmp_path / "clock"
    file.touch()
    clock = clock_of(tmp_path)
    file.write_text("2026-11-25T10:40\n")
    assert clock(BERLIN) == datetime(2026, 11, 25, 10, 40, tzinfo=BERLIN)
    file.write_text("2026-11-25T23:40Z")
    assert clock(BERLIN).date().day == 26


def test_the_machines_clock_is_asked_where_no_file_says_so(tmp_path: Path) -> None:
    without = clock_of(tmp_path)
    (tmp_path / "clock").touch()
    for clock in (without, clock_of(tmp_path)):
        assert abs(clock(BERLIN) - datetime.now(UTC)) < timedelta(minutes=1)


def test_a_wrong_clock_is_named(tmp_path: Path) -> None:
    (tmp_path / "clock").write_text("noon")
    with pytest.raises(SettingsError, match="clock"):
        clock_of(tmp_path)(BERLIN)
