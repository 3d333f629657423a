"""Who runs a command, for what is noted of it."""

from __future__ import annotations

import getpass
import os


def user() -> str:
    """The name of the machine's user; where it has none, as in some containers, its number."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid-{os.getuid()}"
