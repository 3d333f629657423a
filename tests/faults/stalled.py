"""The worker with a silent stall: it fetches, and what it fetched never reaches a handler."""

from __future__ import annotations

from pipelines.runtime.record import Record
from tests.faults.worker import run
from worker.in_flight import InFlight


def drop(self: InFlight, record: Record) -> None:
    """As if the record were lost inside Faust."""


InFlight.put = drop  # type: ignore[method-assign]
run()
