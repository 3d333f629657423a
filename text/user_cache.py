"""Where this user's caches are: what can be made again, but not in a moment."""

from __future__ import annotations

import os
from pathlib import Path


def user_cache() -> Path:
    """Our folder, after the XDG base directory specification. Raises: RuntimeError, the user has no home."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The specification says: relative paths are to be ignored.
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "pagewire"
