"""The worker with the classic mistake: a record counts as finished when it is taken, not when it is done."""

from __future__ import annotations

from pipelines.runtime.record import Record
from tests.faults.worker import run
from worker.in_flight import InFlight

put = InFlight.put


def put_and_finish(self: InFlight, record: Record) -> None:
    put(self, record)
    self._finished(record)


InFlight.put = put_and_finish  # type: ignore[method-assign]
run()
