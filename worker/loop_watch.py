"""Ends a worker whose event loop is blocked by a handler.

The watchdog runs on that loop, so it cannot see this. The standard library's faulthandler has a thread of its own that
needs neither the loop nor the interpreter's lock, which a backtracking regular expression holds. Unless its timer is
reset in time, it writes the stack of every thread to stderr and ends the process with code 1. The next process knows
which records were at work (attempts.py).
"""

from __future__ import annotations

import asyncio
import faulthandler
import sys

LEAST = 30.0  # seconds; a busy machine may block us for less
RESETS = 6  # of the timer within its limit


async def watch_loop(limit: float) -> None:
    """Run for ever; cancel it to end the watch.

    Args:
        limit: seconds of a blocked loop that end the process.
    """
    if sys.__stderr__ is None:  # nowhere to say why
        return
    try:
        while True:
            faulthandler.dump_traceback_later(limit, exit=True, file=sys.__stderr__)
            await asyncio.sleep(limit / RESETS)
    finally:
        faulthandler.cancel_dump_traceback_later()
