"""Shows the progress of a start: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

Advance = Callable[[int], None]


class EngineProgress:
    """Receives the engine's reports. This one shows nothing."""

    def note(self, line: str) -> None:
        """Show a line."""

    @contextmanager
    def task(self, label: str, total: int | None = None) -> Iterator[Advance]:
        """Show work while the context lasts: `total` bytes to count, or None for a wait."""
        yield lambda _: None


class PlainProgress(EngineProgress):
    """One line when work starts, one when it is done: for logs and pipes."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def note(self, line: str) -> None:
        """Write the line."""
        print(line, file=self._stream, flush=True)

    @contextmanager
    def task(self, label: str, total: int | None = None) -> Iterator[Advance]:
        """Write label and size, then the duration. Failures are left to the caller."""
        began = time.monotonic()
        size = f" ({total / 1e6:.0f} MB)" if total else ""
        self.note(f"{label}{size} ...")
        yield lambda _: None
        self.note(f"{label}: done in {time.monotonic() - began:.1f} s")


class RichProgress(EngineProgress):
    """Bars and spinners on a terminal, several at once."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars

    def note(self, line: str) -> None:
        """Print the line above the bars."""
        self._bars.console.print(line, highlight=False, markup=False)

    @contextmanager
    def task(self, label: str, total: int | None = None) -> Iterator[Advance]:
        """Show a bar, which stays full when the work is done."""
        task = self._bars.add_task(label, total=total)
        yield lambda size: self._bars.advance(task, size)
        self._bars.update(task, total=total or 1, completed=total or 1)


@contextmanager
def open_progress(stream: IO[str] = sys.stderr) -> Iterator[EngineProgress]:
    """Bars when `stream` is a terminal, else plain lines."""
    if not stream.isatty():
        yield PlainProgress(stream)
        return
    columns = (
        SpinnerColumn(finished_text="✓"),
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(file=stream)) as bars:
        yield RichProgress(bars)
