"""A call in a process of its own: for what computes for seconds and does not let other threads run meanwhile.

The process is new, gives way to others, and ends with the call, so that its memory is given back.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any, TypeVar

from pipelines.runtime.errors import Retryable

R = TypeVar("R")

NICE = 10


async def in_own_process(function: Callable[..., R], *args: Any) -> R:
    """What the function returns; it and its arguments are pickled. When cancelled, it goes on to its end.

    Raises:
        Retryable: the process was ended, as a rule for want of memory. What the function raises.
    """
    return await asyncio.to_thread(_called, function, *args)  # starting a process takes time, too


def _called(function: Callable[..., R], *args: Any) -> R:
    # Spawned, not forked: threads hold locks of ours that a fork would never see released.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=os.nice, initargs=(NICE,)) as pool:
        try:
            return pool.submit(function, *args).result()
        except BrokenProcessPool as err:
            raise Retryable("the process that was to compute it was ended; is there memory for it?") from err
