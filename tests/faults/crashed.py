"""The worker with a defect inside Faust's own services: its app crashes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.faults.worker import run
from worker.offsets import OffsetBook


def broken(self: OffsetBook[Any], partition: Any, offsets: Iterable[int]) -> None:
    raise AssertionError("this must never happen")


OffsetBook.fetched = broken  # type: ignore[method-assign]
run()
