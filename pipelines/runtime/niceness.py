"""Lower scheduling priority for background work, so that saves and questions get the processors first."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

# Linux may share the processors first among sessions and then among the threads of a session (sched(7), "The autogroup
# feature"). So niceness works within a session, or the session itself has to give way.
AUTOGROUP = Path("/proc/self/autogroup")
NICEST = 19


def give_way(by: int) -> None:
    """Lower the priority of this process; call it before any thread is started.

    Not for a worker: if it misses its heartbeats on a busy machine, it loses its partitions and repeats its work. In a
    worker only computing threads give way, and none that holds Python's lock for long.

    Args:
        by: 0 (not at all) to 19 (to all others), as for nice(1). On Linux only.
    """
    thread_gives_way(by)
    if by and os.getsid(0) == os.getpid():  # else it would slow down every process of the same terminal
        # Not Linux, a kernel without this feature, or a session that shares the root's group, which has no niceness.
        with suppress(OSError):
            AUTOGROUP.write_text(str(by))


def thread_gives_way(by: int) -> None:
    """Lower the priority of the calling thread and the threads that it starts; `by` as for `give_way`.

    At 19 it only gets idle processors, and gives them back at once (SCHED_IDLE). A thread with another niceness keeps
    its processor for some milliseconds when another one wakes up. If all processors are busy, it does not run: see
    adapters.embedders.model_threads.
    """
    if by and sys.platform == "linux":  # elsewhere niceness applies to the whole process
        if by == NICEST:
            with suppress(PermissionError):  # some sandboxes
                os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        # Never raised again: a process that was started with `nice` may not.
        os.setpriority(os.PRIO_PROCESS, 0, max(by, os.getpriority(os.PRIO_PROCESS, 0)))
