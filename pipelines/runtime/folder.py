"""Lists and reads files below a folder that others may write to, and never files outside of it.

    walk ─▶ Found…          read ─▶ resolved ─▶ opened segment by segment ─▶ a file? small enough? ─▶ bytes

Between the check of a path and its opening, another process may put a link there. So links are resolved first, and then
every segment of the result is opened without following links: a file outside the folder is refused. An error concerns
one file alone: `reason` describes it, and the other files follow.
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

LOST = "lost+found"  # from repairs of the file system; only root may list it
LONGEST_REASON = 300  # characters
NO_FILE = "not a regular file"
ELSEWHERE = "leads out of its folder"


class Unfit(ValueError):
    """Why a file is not read, for an editor."""


@dataclass(frozen=True)
class FolderEntry:
    """An entry of the folder: a readable file, or `problem` says why not."""

    path: Path
    kind: Literal["file", "link", "folder"]  # a link that is not followed; a folder that cannot be listed
    stat: os.stat_result | None = None  # None: no permission
    problem: str = ""


class Folder:
    """One folder. Links in its own path are followed, because an operator has set it."""

    def __init__(self, path: Path) -> None:
        """Raises: OSError, RuntimeError: links in a circle."""
        self._set = path.absolute()
        self.path = path.resolve()

    def relative(self, path: Path) -> str:
        """The name of a file below the folder, with unprintable characters escaped."""
        name = os.fsencode(path.relative_to(self.path).as_posix()).decode("utf-8", "backslashreplace")
        return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in name)

    def walk(self) -> Iterator[FolderEntry]:
        """All files, in a stable order, without hidden ones. Links to folders are skipped.

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
            except FileNotFoundError:  # deleted since it was listed
                continue
            except OSError as err:
                yield FolderEntry(Path(entry.path), "folder", problem=f"cannot be listed: {err.strerror}")

    def _found(self, entry: os.DirEntry[str]) -> FolderEntry | None:
        """Raises: FileNotFoundError."""
        path, link = Path(entry.path), entry.is_symlink()
        try:
            facts = self._resolved(path).stat() if link else entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            if link:
                return FolderEntry(path, "link", problem="a link that leads nowhere")
            raise
        except (OSError, Unfit) as err:
            return FolderEntry(path, "link" if link else "file", problem=reason(err))
        if link and stat.S_ISDIR(facts.st_mode):
            return None
        return FolderEntry(path, "file", facts, self._problem(path, facts))

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
            Unfit: it lies outside, is hidden, no file, larger than `most` bytes, or was written to meanwhile.
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
        """Raises: Unfit: it lies outside, or is hidden. OSError, ValueError."""
        if path.is_relative_to(self._set):
            path = path.relative_to(self._set)
        asked = Path(os.path.normpath(self.path / path))
        if not asked.is_relative_to(self.path):  # the message must not say whether the file exists
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
            # Without O_NONBLOCK, opening a pipe would wait for a writer.
            handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=here)
        finally:
            os.close(here)
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise Unfit(NO_FILE)
        with os.fdopen(handle, "rb") as file:
            yield file


def reason(err: Exception) -> str:
    """An error of reading or parsing a file, in one line, without paths of this machine."""
    if isinstance(err, ValidationError):
        return problems(err)
    if isinstance(err, RecursionError):
        return "nested too deep"
    if isinstance(err, OSError) and err.strerror:
        return f"cannot be read: {err.strerror}"
    message = " ".join(str(err).split())[:LONGEST_REASON]
    return message if isinstance(err, ValueError) and message else f"{type(err).__name__}: {message}"


def _listed(place: str | Path) -> list[os.DirEntry[str]]:
    """The entries of one folder in reverse order. Raises: OSError."""
    with os.scandir(place) as entries:
        return sorted((entry for entry in entries if not _hidden(entry.name)), key=lambda e: e.name, reverse=True)


def _hidden(name: str) -> bool:
    return name.startswith(".") or name == LOST
