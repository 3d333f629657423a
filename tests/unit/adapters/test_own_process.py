"""A call in a process of its own: what it returns and raises comes back, and its death is told."""

from __future__ import annotations

import os
import signal

import pytest

from adapters.own_process import in_own_process
from pipelines.runtime.errors import Retryable


async def test_what_is_computed_elsewhere_comes_back() -> None:
    assert await in_own_process(os.getpid) != os.getpid()
    with pytest.raises(ValueError, match="invalid literal"):
        await in_own_process(int, "many")


async def test_a_process_that_is_killed_can_be_tried_again() -> None:
    with pytest.raises(Retryable, match="memory"):
        await in_own_process(signal.raise_signal, signal.SIGKILL)
