"""How commands print and fail: tables and bars for people, JSON for scripts, one line per error, exit codes."""

from __future__ import annotations

import errno
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from time import monotonic
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from pydantic_core import to_jsonable_python
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import TimeRemainingColumn as Remaining
from rich.table import Column, Table

from pipelines.runtime.errors import PagewireError, Retryable, UnknownSite, WrongUse, did_you_mean
from schemas.base import problems

NOT_SO = 1  # the thing asked for is not so
WRONG_USE = 2
NO_SERVICE = 3
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO})  # a disk that has no room, or is broken

# Parameters that most commands have.
Site = Annotated[str, typer.Argument(help="Site, as in pagewire.yaml.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

# Without a terminal nothing is folded: a table goes on into a file or a pipe as it is.
out = Console(highlight=False, width=None if sys.stdout.isatty() else 200)
err = Console(stderr=True, highlight=False)


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    plain = to_jsonable_python(value, by_alias=False, inf_nan_mode="constants", fallback=str)
    sys.stdout.write(json.dumps(plain, ensure_ascii=False, indent=2) + "\n")


def table(columns: Sequence[str], lines: Iterable[Sequence[object]] = ()) -> Table:
    """A plain table; columns whose name ends in `#` hold numbers. Times are shown in this machine's time zone."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        made.add_column(column.removesuffix("#"), justify="right" if column.endswith("#") else "left", overflow="fold")
    for line in lines:
        made.add_row(*(_cell(value) for value in line))
    return made


def _cell(value: object) -> str:
    match value:
        case None:
            return ""
        case datetime():
            return f"{value.astimezone():%Y-%m-%d %H:%M}"
        case tuple():
            return " ".join(map(_cell, value))
        case _:
            return escape(str(value))


def complain(why: object) -> None:
    """What went wrong, on standard error."""
    err.print(f"[red]error[/] {escape(str(why))}", soft_wrap=True)


@contextmanager
def explained() -> Iterator[None]:
    """Print what Pagewire can explain as one line and leave with the right exit code."""
    try:
        yield
    except UnknownSite as error:
        complain(f"{error}{did_you_mean(error.site, error.known)}")
        raise typer.Exit(WRONG_USE) from None
    except PagewireError as error:
        complain(error)
        raise typer.Exit(_code(error)) from None
    except ValidationError as error:  # an argument that its schema does not take
        complain(problems(error))
        raise typer.Exit(WRONG_USE) from None
    except OSError as error:  # of a file, or of the disk
        if error.filename is None and error.errno not in FULL:
            raise
        complain(f"{error.filename}: {error.strerror}" if error.filename else error.strerror)
        raise typer.Exit(NO_SERVICE if error.errno in FULL else WRONG_USE) from None
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def _code(error: PagewireError) -> int:
    if isinstance(error, WrongUse):
        return WRONG_USE
    return NO_SERVICE if isinstance(error, Retryable) else NOT_SO


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
