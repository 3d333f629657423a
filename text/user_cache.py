"""The folder of this user's caches."""

from __future__ import annotations

import os
from pathlib import Path


def user_cache() -> Path:
    """Our cache folder by the XDG base directory specification. Raises: RuntimeError: the user has no home."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The specification requires that relative paths are ignored.
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "pagewire"
