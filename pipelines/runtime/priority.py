"""Giving way: threads that compute for bulk work take the processors that saves and questions leave over.

Threads, not their process: a worker that misses its heartbeats while others are busy loses its partitions, and does
the same work again and again.
"""

from __future__ import annotations

import os
import sys


def give_way(by: int) -> None:
    """Let others go before the calling thread and all threads that it starts.

    Args:
        by: 0 (not at all) to 19 (to everybody), as for nice(1). On Linux; elsewhere niceness is the process's alone.
    """
    if by and sys.platform == "linux":
        # Never back: a process that was started with `nice` may not.
        os.setpriority(os.PRIO_PROCESS, 0, max(by, os.getpriority(os.PRIO_PROCESS, 0)))
