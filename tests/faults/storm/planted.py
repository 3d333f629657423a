"""`pagewire` with a defect planted in it, `STORM_DEFECT=NAME`: shows that the checker sees what it must see.

ack-first       a record counts as finished when it is taken             -> a kill loses changes
last-writer     whoever comes last wins, whatever the revision           -> an older revision is shown
leaves-chunks   removals are said to be done, and are not                -> ghosts of deleted pages
deaf-bulk       an item that was refused counts as written               -> pages of mixed revisions
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pipelines.ingest.heads
import pipelines.ingest.index
from adapters.elastic import writer
from adapters.elastic.pages import PageIndex
from adapters.elastic.writer import Write, WriteOutcome
from cli.main import main
from pipelines.runtime.record import Record
from worker.in_flight import InFlight

VARIABLE = "STORM_DEFECT"

put = InFlight.put
result = writer._result
lines = Write.lines


def put_and_finish(self: InFlight, record: Record) -> None:
    put(self, record)
    self._finished(record)


def never_newer(one: object, other: object) -> bool:
    return False


def unversioned(self: Write) -> list[dict[str, Any]]:
    made = lines(self)
    for action in made[0].values():
        action.pop("version", None)  # a head has none
        action.pop("version_type", None)
    return made


async def remove_nothing(self: PageIndex, change: object, chunks: Sequence[object]) -> None:
    pass


def result_or_written(item: dict[str, Any]) -> WriteOutcome | Exception:
    found = result(item)
    return WriteOutcome(item["_id"], 200) if isinstance(found, Exception) else found


def plant(defect: str) -> None:
    match defect:
        case "ack-first":
            InFlight.put = put_and_finish
        case "last-writer":
            pipelines.ingest.index.newer = pipelines.ingest.heads.newer = never_newer  # type: ignore[assignment]
            Write.lines = unversioned  # type: ignore[method-assign]
        case "leaves-chunks":
            PageIndex.remove = remove_nothing  # type: ignore[method-assign]
        case "deaf-bulk":
            writer._result = result_or_written
        case _:
            raise SystemExit(f"{VARIABLE}: no such defect: {defect}")


if __name__ == "__main__":
    plant(os.environ[VARIABLE])
    main()
