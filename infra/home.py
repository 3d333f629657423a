"""Checks the folder of all local state before its first use."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile

from pipelines.runtime.errors import Retryable, SettingsError


def usable(home: Path) -> None:
    """Create the folder if it is missing, and test that it is writable.

    Raises:
        SettingsError: one of both fails; says why. Retryable: the disk is full.
    """
    try:
        if home.exists() and not home.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "it is no folder")
        home.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=home) as file:
            file.write(b"x")
            file.flush()
    except OSError as err:
        if err.errno in (errno.ENOSPC, errno.EDQUOT):
            raise Retryable(
                f"home (PAGEWIRE_HOME): no space is left for {home}; free some, or take another disk"
            ) from None
        there = next(
            folder for folder in (home, *home.absolute().parents) if os.path.exists(folder)
        )  # which is False without access
        owner = ""
        with suppress(KeyError, NotImplementedError, OSError):
            owner = f"; {there} belongs to {there.owner()}"
        raise SettingsError(
            f"home (PAGEWIRE_HOME): nothing can be kept in {home} ({err.strerror}){owner}; another folder: "
            "PAGEWIRE_HOME=~/.pagewire"
        ) from None
