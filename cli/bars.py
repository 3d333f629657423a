"""How far long work is: a bar for each step on a terminal, a line for each every ten seconds in a file or a pipe."""

from __future__ import annotations

from time import monotonic

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import TimeRemainingColumn as Remaining
from rich.table import Column

from cli.output import err

EVERY = 10.0  # seconds between two lines of a step


class Bars(Progress):
    """On standard error.

    Args:
        transient: the bars go when they are done.
    """

    def __init__(self, *, transient: bool = False) -> None:
        super().__init__(
            TextColumn("{task.description}", table_column=Column(min_width=10)),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            Remaining(),
            TextColumn("{task.fields[rate]}"),
            console=err,
            transient=transient,
            disable=not err.is_terminal,
        )
        self._steps: dict[str, TaskID] = {}
        self._written: dict[str, float] = {}

    def step(self, name: str, done: int, total: int | None = None, rate: str = "", says: str = "") -> None:
        """How far a step is; one that is new begins.

        Args:
            total: None while it is unknown.
            rate: stands behind the bar.
            says: in place of the name.
        """
        if name not in self._steps:
            self._steps[name] = self.add_task(name, total=total, rate=rate)
            self._written[name] = monotonic()
        self.update(self._steps[name], description=says or name, completed=done, total=total, rate=rate)
        if self.disable and (done == total or monotonic() - self._written[name] >= EVERY):
            self._written[name] = monotonic()
            of = "" if total is None else f" of {total:,}"
            err.print(f"{says or name}: {done:,}{of} {rate}".rstrip(), markup=False, soft_wrap=True)
