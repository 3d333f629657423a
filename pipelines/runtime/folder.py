"""Files below a folder that others may write to: which there are, and what is in them, never what lies elsewhere.

    walk ─▶ Found…          read ─▶ resolved ─▶ opened segment by segment ─▶ a file? small enough? ─▶ bytes

Between a look at a path and its opening anybody may put a link there. So links are resolved first, and then every
segment of what they lead to is opened without following any: what is read lies in the folder, or is refused. Whatever
is wrong with a file concerns that file alone: `reason` says it, and the others go on.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from pydantic import ValidationError

from schemas.base import problems

LOST = "lost+found"  # of a file system's repair; only root may list it
LONGEST_REASON = 300  # characters
NO_FILE = "not a regular file"
ELSEWHERE = "leads out of its folder"


class Unfit(ValueError):
    """The file is not read, and why, for an editor."""


@dataclass(frozen=True)
class Found:
    """What a look at the folder met: a file that can be read, or `problem` says why not."""

    path: Path
    kind: Literal["file", "link", "folder"]  # a link that leads nowhere we go; a folder that cannot be listed
    stat: os.stat_result | None = None  # None: nobody may look
    problem: str = ""


class Folder:
    """One folder. Where its own path leads through links they are followed: whoever set it meant that."""

    def __init__(self, path: Path) -> None:
        """Raises: OSError, RuntimeError: links in a circle."""
        self._set = path.absolute()
        self.path = path.resolve()

    def relative(self, path: Path) -> str:
        """The name of a file below the folder, with what cannot be printed escaped; every other name is itself."""
        name = os.fsencode(path.relative_to(self.path).as_posix()).decode("utf-8", "backslashreplace")
        return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in name)

    def walk(self) -> Iterator[Found]:
        """All files, in a stable order, without hidden ones. Folders that are links are passed over.

        Raises:
            OSError: the folder itself cannot be listed.
        """
        waiting = _listed(self.path)
        while waiting:
            entry = waiting.pop()
            try:
                if entry.is_dir(follow_symlinks=False):
                    waiting += _listed(entry.path)
                elif (found := self._found(entry)) is not None:
                    yield found
            except FileNotFoundError:  # gone since it was listed
                continue
            except OSError as err:
                yield Found(Path(entry.path), "folder", problem=f"cannot be listed: {err.strerror}")

    def _found(self, entry: os.DirEntry[str]) -> Found | None:
        """Raises: FileNotFoundError."""
        path, link = Path(entry.path), entry.is_symlink()
        try:
            facts = self._resolved(path).stat() if link else entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            if link:
                return Found(path, "link", problem="a link that leads nowhere")
            raise
        except (OSError, Unfit) as err:
            return Found(path, "link" if link else "file", problem=reason(err))
        if link and stat.S_ISDIR(facts.st_mode):
            return None
        return Found(path, "file", facts, self._problem(path, facts))

    def _problem(self, path: Path, facts: os.stat_result) -> str:
        try:
            path.relative_to(self.path).as_posix().encode()
        except UnicodeEncodeError:
            return "its name is not UTF-8"
        return "" if stat.S_ISREG(facts.st_mode) else NO_FILE

    def read(self, path: Path, most: int) -> bytes:
        """The whole file.

        Args:
            path: absolute, or below the folder.

        Raises:
            Unfit: it lies elsewhere, is hidden, no file, larger than `most` bytes, or was written to meanwhile.
            OSError, ValueError: it cannot be opened.
        """
        with self._open(path) as file:
            before = os.fstat(file.fileno())
            if before.st_size > most:
                raise Unfit(f"larger than {most:,} bytes")
            data = file.read(most + 1)
            after = os.fstat(file.fileno())
        if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns) or len(data) > most:
            raise Unfit("was written to while it was read; it is taken the next time")
        return data

    def head(self, path: Path, size: int) -> bytes:
        """The first bytes of the file. Raises: as `read`."""
        with self._open(path) as file:
            return file.read(size)

    def _resolved(self, path: Path) -> Path:
        """Raises: Unfit: it lies elsewhere, or is hidden. OSError, ValueError."""
        if path.is_relative_to(self._set):
            path = path.relative_to(self._set)
        asked = Path(os.path.normpath(self.path / path))
        if not asked.is_relative_to(self.path):  # nobody is told whether there is such a file
            raise Unfit(ELSEWHERE)
        try:
            real = asked.resolve(strict=True)
        except RuntimeError:
            raise Unfit("a link that leads in a circle") from None
        if not real.is_relative_to(self.path):
            raise Unfit(ELSEWHERE)
        if any(_hidden(part) for part in real.relative_to(self.path).parts):
            raise Unfit("a hidden file")
        return real

    @contextmanager
    def _open(self, path: Path) -> Iterator[BinaryIO]:
        real = self._resolved(path)
        if real == self.path:
            raise Unfit(NO_FILE)
        *folders, name = real.relative_to(self.path).parts
        here = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            for folder in folders:
                inner = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
                os.close(here)
                here = inner
            # Without O_NONBLOCK a pipe that somebody put there would be waited for.
            handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=here)
        finally:
            os.close(here)
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise Unfit(NO_FILE)
        with os.fdopen(handle, "rb") as file:
            yield file


def reason(err: Exception) -> str:
    """Whatever reading or parsing a file raised, in one line, without places of this machine."""
    if isinstance(err, ValidationError):
        return problems(err)
    if isinstance(err, RecursionError):
        return "nested too deep"
    if isinstance(err, OSError) and err.strerror:
        return f"cannot be read: {err.strerror}"
    said = " ".join(str(err).split())[:LONGEST_REASON]
    return said if isinstance(err, ValueError) and said else f"{type(err).__name__}: {said}"


def _listed(place: str | Path) -> list[os.DirEntry[str]]:
    """What is in one folder, the first one last. Raises: OSError."""
    with os.scandir(place) as entries:
        return sorted((entry for entry in entries if not _hidden(entry.name)), key=lambda e: e.name, reverse=True)


def _hidden(name: str) -> bool:
    return name.startswith(".") or name == LOST
