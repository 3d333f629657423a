"""Giving way: work that nobody waits for takes the processors that saves and questions leave over."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

# Linux may share the processors out among sessions first and among the threads of one session only then (sched(7),
# "The autogroup feature"). So what gives way to each other must be of one session, or the session itself gives way.
AUTOGROUP = Path("/proc/self/autogroup")
NICEST = 19


def give_way(by: int) -> None:
    """Let other processes go before this one; call it before any thread is started.

    Not for a worker: one that misses its heartbeats while others are busy loses its partitions, and does the same work
    again and again. There, what computes gives way, and nothing that holds Python's lock for long.

    Args:
        by: 0 (not at all) to 19 (to everybody), as for nice(1). On Linux only.
    """
    thread_gives_way(by)
    if by and os.getsid(0) == os.getpid():  # else it would slow down all that runs in the same terminal
        # Not Linux, a kernel without this feature, or a session that shares the root's group, which has no niceness.
        with suppress(OSError):
            AUTOGROUP.write_text(str(by))


def thread_gives_way(by: int) -> None:
    """Let others go before the calling thread and all threads that it starts; `by` as for `give_way`.

    At 19 it gets only what nobody else wants, and gives it back at once (SCHED_IDLE). A thread that is merely nice
    keeps its processor for some milliseconds when another one wakes up. On a machine whose processors are all taken
    it comes to nothing: see adapters.embedders.model_threads.
    """
    if by and sys.platform == "linux":  # elsewhere niceness is the whole process's
        if by == NICEST:
            with suppress(PermissionError):  # some sandboxes
                os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        # Never back: a process that was started with `nice` may not.
        os.setpriority(os.PRIO_PROCESS, 0, max(by, os.getpriority(os.PRIO_PROCESS, 0)))
