"""A process that gives way says so to its kernel; in a process of its own, for there is no way back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.runtime import priority

TOLD = """
import os
from pipelines.runtime.priority import AUTOGROUP, give_way
before = os.nice(0)
give_way({by})
print(os.nice(0) - before, AUTOGROUP.read_text().split()[-1] if AUTOGROUP.exists() else "")
"""


def told(by: int) -> tuple[int, str]:
    """Its niceness less what it was born with, and its session's where the kernel has that."""
    done = subprocess.run(
        [sys.executable, "-c", TOLD.format(by=by)], capture_output=True, text=True, check=True, start_new_session=True
    )
    nice, _, session = done.stdout.strip().partition(" ")
    return int(nice), session


def test_others_go_before_the_process_and_before_its_session() -> None:
    assert told(7) == (7, "7" if priority.AUTOGROUP.exists() else "")


def test_without_a_wish_nothing_changes() -> None:
    assert told(0)[0] == 0


def test_a_kernel_that_shares_between_processes_alone_is_fine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(priority, "AUTOGROUP", tmp_path / "no" / "such")
    given: list[int] = []
    monkeypatch.setattr("os.nice", given.append)
    priority.give_way(5)
    assert given == [5]
