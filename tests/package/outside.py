"""Commands where the checkout cannot be seen: an empty home, a folder of its own, none of our settings."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

import psutil

from tests.package.contents import ROOT

BIN = Path(sys.executable).parent  # of the environment that runs the tests; it has uv
UVX = BIN / "uvx"
PYTHON = Path(sys.executable).resolve()  # behind the environment: it has none of its packages
NOT_HANDED_ON = ("PAGEWIRE_", "OPENAI_", "PYTHON", "XDG_", "VIRTUAL_ENV", "PIPX_", "PYTEST_")
GONE_WITHIN = 10.0  # seconds


@dataclass(frozen=True)
class Outside:
    """A folder with an empty home in it."""

    folder: Path
    cache: Path  # of downloaded packages, for all commands of a session

    def __post_init__(self) -> None:
        for name in (self.home, self.here, self.temporary):
            name.mkdir(parents=True)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def here(self) -> Path:
        """Where commands are started."""
        return self.folder / "here"

    @property
    def temporary(self) -> Path:
        return self.folder / "tmp"

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(NOT_HANDED_ON)}
        path = [part for part in kept["PATH"].split(os.pathsep) if not Path(part).resolve().is_relative_to(ROOT)]
        return {
            **kept,
            "HOME": str(self.home),
            "PATH": os.pathsep.join(path),
            "TMPDIR": str(self.temporary),
            "UV_CACHE_DIR": str(self.cache / "uv"),
            "UV_PYTHON": str(PYTHON),
            "UV_PYTHON_DOWNLOADS": "never",
            "PIP_CACHE_DIR": str(self.cache / "pip"),
        }

    def run(self, *command: str | Path, timeout: float, **settings: str) -> subprocess.CompletedProcess[str]:
        """A command that ends by itself; when it takes too long, it is ended with everything it has started."""
        with subprocess.Popen(
            [str(part) for part in command],
            cwd=self.here,
            env=self.environment | settings,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                out, err = process.communicate(timeout=timeout)
            except BaseException:
                for left in (process, *self.processes()):
                    left.kill()
                raise
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    def processes(self) -> list[psutil.Process]:
        """Those that have this home: whatever was started here, however far down."""
        return list(self._processes())

    def left_over(self) -> Sequence[psutil.Process]:
        """Those that do not end soon."""
        end = monotonic() + GONE_WITHIN
        while (left := self.processes()) and monotonic() < end:
            sleep(0.1)
        return left

    def _processes(self) -> Iterator[psutil.Process]:
        for process in psutil.process_iter():
            try:
                if process.environ().get("HOME") == str(self.home):
                    yield process
            except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
                continue
