"""The worker with a defect in the runtime itself: its guard raises."""

from __future__ import annotations

from tests.faults.worker import run
from worker.guard import Guard
from worker.in_flight import RecordInFlight


async def broken(self: Guard, work: RecordInFlight) -> None:
    raise AssertionError("this must never happen")


Guard.__call__ = broken  # type: ignore[method-assign]
run()
