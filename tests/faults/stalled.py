"""The worker with a silent stall: it fetches, and what it fetched never reaches a handler."""

from __future__ import annotations

from pipelines.runtime.lanes import Lanes
from pipelines.runtime.record import Record
from tests.faults.worker import run


def drop(self: Lanes, record: Record) -> None:
    """As if the record were lost inside Faust."""


Lanes.put = drop  # type: ignore[method-assign]
run()
