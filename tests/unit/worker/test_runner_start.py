"""What the worker does while its services start."""

from __future__ import annotations

import pytest

from pipelines.runtime.errors import Retryable
from pipelines.runtime.retry import patiently
from worker import runner


async def test_services_are_waited_for_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "START_POLL", 0.01)
    monkeypatch.setattr(runner, "START_TIMEOUT", 0.2)
    tries = 0

    async def setup() -> None:
        nonlocal tries
        tries += 1
        raise Retryable("no index")

    with pytest.raises(Retryable, match="no index"):
        await patiently(setup, runner._at_start("faulty"))
    assert 1 < tries <= 20


async def test_a_wait_that_would_end_too_late_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "START_TIMEOUT", 5.0)
    pause = runner._at_start()
    assert pause(Retryable("no broker"), 1) == runner.START_POLL
    monkeypatch.setattr(runner, "START_POLL", 6.0)
    assert pause(Retryable("no broker"), 2) is None
