"""The clock of revisions, leases and signatures."""

from __future__ import annotations

import time


def milliseconds() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000
