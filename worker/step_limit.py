"""Interrupts a handler that blocks the event loop, and with it the whole process.

```
 SIGPROF, after every TICK of processor time ─▶ the same step as at the last tick? ─▶ at its limit ─▶ StepTooLong
                                                                                       raised inside the handler
```
A step is the code of a task between two awaits. Python runs a signal's handler between two bytecodes of the main
thread, and also inside a backtracking regular expression; its exception is raised in the code that spins. So the record
becomes a dead letter with a permanent error, and the process goes on.

Processor time is counted, not wall time, so a busy machine or a frozen process causes no interrupt. Native code that
holds the interpreter's lock without checking signals cannot be interrupted: watchdog.py ends its process.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from time import thread_time
from types import FrameType

from pipelines.runtime import try_limit
from pipelines.runtime.errors import Permanent

TICK = 0.2  # seconds of processor time of the process
_STEP = asyncio.Handle._run.__code__  # every step of a task is one call of it


class StepTooLong(Permanent):
    """Working on the message kept the event loop busy for too long, and would do so again."""

    code = "step-too-long"


@contextmanager
def step_limits() -> Iterator[None]:
    """Enforce the step limits of the stages inside the block. For the main thread."""
    before = signal.signal(signal.SIGPROF, _Ticks())
    signal.siginterrupt(signal.SIGPROF, False)  # native code in other threads must not be interrupted
    signal.setitimer(signal.ITIMER_PROF, TICK, TICK)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


class _Ticks:
    """The signal's handler; it remembers the last step."""

    def __init__(self) -> None:
        self._step: FrameType | None = None
        self._since = 0.0  # of the main thread's processor time

    def __call__(self, _signum: int, frame: FrameType | None) -> None:
        limit = try_limit.step_limit()
        step = _step_of(frame) if limit is not None else None
        now = thread_time()
        if step is None or step is not self._step:
            self._step, self._since = step, now
            return
        assert limit is not None
        if now - self._since >= limit:
            self._since = now  # a handler that catches this and goes on is interrupted again
            raise StepTooLong(f"{limit:g} s of processor time without letting others work")


def _step_of(frame: FrameType | None) -> FrameType | None:
    while frame is not None and frame.f_code is not _STEP:
        frame = frame.f_back
    return frame
