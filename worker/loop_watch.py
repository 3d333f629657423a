"""Ends a worker whose event loop stands still: some code of a handler never lets go of it.

The watchdog runs on that loop, so it cannot see this. The standard library's faulthandler has a thread of its own that
needs neither the loop nor the interpreter's lock, which a regular expression without end holds, too. When nobody winds
it up for so long, it writes where every thread stands to stderr, and ends the process with code 1; what was at work
then is known to the next process (attempts.py).
"""

from __future__ import annotations

import asyncio
import faulthandler
import sys

LEAST = 30.0  # seconds; for less a busy machine may have no time for us
WINDS = 6  # within the time after which a standstill is one


async def watch_loop(limit: float) -> None:
    """For ever; cancel it to end the watch.

    Args:
        limit: seconds of standstill that end the process.
    """
    if sys.__stderr__ is None:  # nowhere to say why
        return
    try:
        while True:
            faulthandler.dump_traceback_later(limit, exit=True, file=sys.__stderr__)
            await asyncio.sleep(limit / WINDS)
    finally:
        faulthandler.cancel_dump_traceback_later()
