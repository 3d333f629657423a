"""The processor's time that a call takes, as a quiet machine would need it.

Machines are shared: only this thread's time counts, and what takes too long is measured again beside work that is
known. Where that takes three times what it should, the call has three times the time.
"""

from __future__ import annotations

import gc
import re
import time
from collections.abc import Callable

KNOWN_SECONDS = 0.011  # of `_known`, on the machine whose seconds the limits are
SHARED = 1.6  # times as long where another process works on the same core; known work does not always show it
AGAIN = 4  # times that what takes too long is measured once more


def seconds(call: Callable[[], object]) -> float:
    """Of this thread's processor. Collecting others' garbage is not the call's work."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        began = time.thread_time()
        call()
        return time.thread_time() - began
    finally:
        if collecting:
            gc.enable()


def quiet_seconds(call: Callable[[], object], limit: float) -> float:
    """The same on a quiet machine; measured once where that is within the limit."""
    best = seconds(call)
    for _ in range(AGAIN):
        if best <= limit:
            break
        best = min(best, seconds(call) / slowness())
    return best


def slowness() -> float:
    """How many times as long as on a quiet machine things may take here and now."""
    return SHARED * max(1.0, min(seconds(_known) for _ in range(3)) / KNOWN_SECONDS)


_PATTERN = re.compile(r"(?:\w+ ){3}x")
_TEXT = "some words that are read again and again " * 50
_WORDS = _TEXT.split()[:100]


def _known() -> None:
    """As much of memory is read and written as a page needs, for that is what processors share."""
    _PATTERN.search(_TEXT)
    made = [{"tag": word[::-1].casefold(), "at": [n]} for n in range(250) for word in _WORDS]
    made.sort(key=lambda each: str(each["tag"]))
