"""Giving way: bulk work takes the processors that saves and questions leave over."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

# Linux shares the processors out among sessions first and among the processes of one session only then (sched(7),
# "The autogroup feature"): between two workers, each in a session of its own, nice alone means nothing.
AUTOGROUP = Path("/proc/self/autogroup")


def give_way(by: int) -> None:
    """Let other processes go first; call it before any thread is started.

    Args:
        by: 0 (not at all) to 19 (to everybody), as for nice(1).
    """
    if not by:
        return
    os.nice(by)
    with suppress(OSError):  # not Linux, or a kernel without this feature: then nice is enough
        AUTOGROUP.write_text(str(by))
