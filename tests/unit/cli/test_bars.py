"""How far long work is, where nobody sees bars."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cli import output as bars
from cli.output import EVERY, Bars


def test_in_a_file_there_is_a_line_now_and_then_and_one_at_the_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    moved = [0.0]
    clock: Callable[[], float] = lambda: moved[0]  # noqa: E731
    monkeypatch.setattr(bars, "monotonic", clock)
    with Bars() as shown:
        for done in range(0, 3001, 100):
            shown.step("sent", done, 3000, rate="9 pages/s")
            moved[0] += EVERY / 10
        shown.step("listed", 7)
    lines = [line for line in capsys.readouterr().err.splitlines() if line]
    assert lines == [f"sent: {done:,} of 3,000 9 pages/s" for done in (1000, 2000, 3000)]
