"""Looks up records by key, and serves concurrent lookups with one reading of the log.

A restarted worker looks up the beginnings of all unfinished answers. They are in the same range of the log. Lookups
that arrive during a reading share the next one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from pipelines.runtime.record import Record

GATHER = 0.01  # seconds to wait for further lookups before a reading


@dataclass(frozen=True)
class Lookup:
    """The records of a key written at `since_ms` (since 1970) or later, and before `until_ms`.

    `begins`: a partition, and an offset in it before which the key has no records.
    """

    key: bytes
    since_ms: int
    until_ms: int | None = None
    begins: tuple[int, int] | None = None


class Lookups:
    """`read` returns the records of several lookups, in their order, by one reading."""

    def __init__(self, read: Callable[[Sequence[Lookup]], Awaitable[Sequence[list[Record]]]]) -> None:
        self._read = read
        self._waiting: list[tuple[Lookup, asyncio.Future[list[Record]]]] = []
        self._task: asyncio.Task[None] | None = None

    async def of(self, lookup: Lookup) -> list[Record]:
        """The lookup's records. Raises: errors of `read`."""
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
            except Exception as err:  # noqa: BLE001 - raised in the callers
                for _, found in taken:
                    if not found.done():
                        found.set_exception(err)
                continue
            for (_, found), records in zip(taken, results, strict=True):
                if not found.done():  # the caller may be cancelled
                    found.set_result(records)
