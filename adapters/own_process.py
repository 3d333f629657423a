"""Runs a function in a process of its own, for computations of seconds that hold Python's lock.

The process has a lower priority (nice), and ends with the call, which frees its memory.
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
    """The function's result. Function and arguments are pickled. A cancelled call runs to its end.

    Raises:
        Retryable: the process was killed, usually for lack of memory. Errors of the function.
    """
    return await asyncio.to_thread(_run, function, *args)  # starting the process blocks as well


def _run(function: Callable[..., R], *args: Any) -> R:
    # Spawned, not forked: locks that other threads hold would stay locked in a forked process for ever.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=os.nice, initargs=(NICE,)) as pool:
        try:
            return pool.submit(function, *args).result()
        except BrokenProcessPool as err:
            raise Retryable("the process that was to compute it was ended; is there memory for it?") from err
