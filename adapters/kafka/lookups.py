"""Looking for the records of keys, for many who ask at the same time by one reading.

A worker that starts again looks for the beginnings of all answers that were under way. They stand in the same stretch
of the log; whoever asks while it is being read is served by the next reading, with all others who came meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from pipelines.runtime.record import Record

GATHER = 0.01  # seconds in which those who are woken up together ask together


@dataclass(frozen=True)
class Lookup:
    """Records of a key that were written from `since_ms` (since 1970) on, and before `until_ms`.

    `begins`: a partition, and the offset before which there are none in it.
    """

    key: bytes
    since_ms: int
    until_ms: int | None = None
    begins: tuple[int, int] | None = None


class Lookups:
    """`read`: the records of several lookups, in their order, by one reading."""

    def __init__(self, read: Callable[[Sequence[Lookup]], Awaitable[Sequence[list[Record]]]]) -> None:
        self._read = read
        self._waiting: list[tuple[Lookup, asyncio.Future[list[Record]]]] = []
        self._task: asyncio.Task[None] | None = None

    async def of(self, lookup: Lookup) -> list[Record]:
        """Raises: what `read` raises."""
        found: asyncio.Future[list[Record]] = asyncio.get_running_loop().create_future()
        self._waiting.append((lookup, found))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="lookups")
        return await found

    async def aclose(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for _, found in self._waiting:
            found.cancel()

    async def _run(self) -> None:
        while self._waiting:
            await asyncio.sleep(GATHER)
            taken, self._waiting = self._waiting, []
            try:
                results = await self._read([lookup for lookup, _ in taken])
            except asyncio.CancelledError:
                for _, found in taken:
                    found.cancel()
                raise
            except Exception as err:  # noqa: BLE001 - it belongs to those who asked
                for _, found in taken:
                    if not found.done():
                        found.set_exception(err)
                continue
            for (_, found), records in zip(taken, results, strict=True):
                if not found.done():  # whoever asked may have left
                    found.set_result(records)
