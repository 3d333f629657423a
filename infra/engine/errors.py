"""Errors of the local engine, whose messages say what to do, and the progress that it shows."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

from pipelines.runtime.errors import Retryable


class EngineError(Retryable):
    """The local engine has failed; the message says what to do."""

    code = "engine"


class RegistryUnreachable(EngineError):
    """A jar could not be fetched."""

    def __init__(self, coordinate: str) -> None:
        super().__init__(
            f"could not fetch {coordinate}: the Maven registry does not answer. Check the network (and "
            "HTTPS_PROXY, or the mirror under [repositories] in jgo's settings), then start again: what "
            "has been fetched is kept. Or set PAGEWIRE_KAFKA and PAGEWIRE_ELASTICSEARCH to servers you run."
        )


class CorruptDownload(EngineError):
    """A jar's checksum differs from the pinned one."""

    def __init__(self, coordinate: str) -> None:
        super().__init__(
            f"{coordinate} is not the file that infra/engine/jars.json pins (sha256 differs); it was thrown "
            "away. Start again; if it happens again, a proxy or mirror changes the files: use another network."
        )


class DiskFull(EngineError):
    """Too little disk space is free."""

    def __init__(self, folder: Path, needed: int) -> None:
        super().__init__(
            f"{folder} needs {-(-needed // 2**20)} MiB of free disk space. Free some, or choose another disk "
            "with PAGEWIRE_HOME (data) or XDG_CACHE_HOME (downloads)."
        )


class PortTaken(EngineError):
    """Another program took the port between our check and the server's start."""

    def __init__(self, server: str, port: int) -> None:
        super().__init__(
            f"{server} could not listen on port {port}: another program has just taken it. Start again and "
            "a free port is chosen, or set PAGEWIRE_ENGINE_KAFKA_PORT / PAGEWIRE_ENGINE_ES_PORT."
        )


class UnsupportedPlatform(EngineError):
    """Pagewire does not run on this platform; the message is from `infra.platforms`."""


class EngineNotInstalled(EngineError):
    """The packages of the local engine are missing, as in the production image."""

    def __init__(self, absent: Sequence[str]) -> None:
        super().__init__(
            f"the local engine is not installed here ({', '.join(absent)} missing). Set PAGEWIRE_KAFKA and "
            f"PAGEWIRE_ELASTICSEARCH to servers you run, or install it: `pip install {' '.join(absent)}`."
        )


class NoJava(EngineError):
    """There is no Java that is new enough for the servers."""

    def __init__(self, minimum: int, too_old: Sequence[str], command: str) -> None:
        super().__init__(
            f"Kafka and Elasticsearch need Java {minimum} or newer, and there is "
            f"{'only ' + ' and '.join(too_old) if too_old else 'none'}. Install one (`{command}`, or name its "
            "folder by JAVA_HOME), or set PAGEWIRE_KAFKA and PAGEWIRE_ELASTICSEARCH to servers you run."
        )


class ServerDied(EngineError):
    """A server's process ended without a stop."""

    def __init__(self, server: str, log_file: Path, log_tail: str) -> None:
        super().__init__(
            f"{server} ended by itself. The last lines of {log_file}:\n{log_tail}\n"
            "If the data is at fault, `pagewire engine reset` starts afresh (and deletes it)."
        )


class ServerNotReady(EngineError):
    """A server runs but does not answer."""

    def __init__(self, server: str, seconds: float, log_file: Path, log_tail: str) -> None:
        super().__init__(
            f"{server} runs but has not answered for {seconds:.0f} s. The last lines of {log_file}:\n{log_tail}\n"
            "On a machine busy with other things, start again when it has less to do."
        )


class EngineRunning(EngineError):
    """The engine is running, so its data is not deleted."""

    def __init__(self, root: Path) -> None:
        super().__init__(f"the engine in {root} is running: stop it first with `pagewire engine stop`.")


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
