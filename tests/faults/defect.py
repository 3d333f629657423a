"""The worker with a defect in the runtime itself: its guard raises."""

from __future__ import annotations

from pipelines.worker.guard import Guard
from pipelines.worker.in_flight import Work
from tests.faults.worker import run


async def broken(self: Guard, work: Work) -> None:
    raise AssertionError("this must never happen")


Guard.__call__ = broken  # type: ignore[method-assign]
run()
