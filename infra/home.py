"""The folder of all local state, before anything is kept there."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile

from pipelines.runtime.errors import Retryable, SettingsError


def usable(home: Path) -> None:
    """Make the folder, if need be, and write into it.

    Raises:
        SettingsError: one of them cannot be done; says why. Retryable: there is no room.
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
        )  # which is False where we may not look
        owner = ""
        with suppress(KeyError, NotImplementedError, OSError):
            owner = f"; {there} belongs to {there.owner()}"
        raise SettingsError(
            f"home (PAGEWIRE_HOME): nothing can be kept in {home} ({err.strerror}){owner}; another folder: "
            "PAGEWIRE_HOME=~/.pagewire"
        ) from None
