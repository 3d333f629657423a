"""Replay: what readers of `answer.events` have missed, read for all of them together.

A gateway that starts again is met by everybody whose stream broke, within a second or two. They have missed about the
same stretch of the log; whoever comes while it is being read is served by that reading.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable

from pipelines.runtime.bus import LogReader
from pipelines.runtime.record import Record

STRETCH = 1_000  # records of all answers in a partition, read at once and held only until they are looked through


class Replay:
    """One per process. `position` says where a partition's tail stands: what is before it can be read."""

    def __init__(self, reader: LogReader, position: Callable[[int], int]) -> None:
        self._reader = reader
        self._position = position
        self._reads: dict[tuple[int, int], asyncio.Task[tuple[list[Record], int]]] = {}

    async def of_key(self, key: bytes, partition: int, start: int) -> AsyncGenerator[Record, None]:
        """Records of `key` from `start` up to where the tail stands now.

        Raises:
            Retryable: the log cannot be read.
        """
        here = self._position(partition)
        while start < here:
            records, end = await self._stretch(partition, start // STRETCH)
            mine = [record for record in records if record.key == key and record.offset >= start]
            del records  # a slow reader must not hold what belongs to others
            for record in mine:
                yield record
            # A reading that began before we came may end before `here`: then the next one goes on.
            start = max(start, end)

    async def aclose(self) -> None:
        for read in self._reads.values():
            read.cancel()
        await asyncio.gather(*self._reads.values(), return_exceptions=True)

    async def _stretch(self, partition: int, number: int) -> tuple[list[Record], int]:
        place = (partition, number)
        if place not in self._reads:
            read = asyncio.create_task(self._read(partition, number), name=f"backlog-{partition}-{number}")
            read.add_done_callback(lambda done: self._reads.pop(place) and (done.cancelled() or done.exception()))
            self._reads[place] = read
        # Shielded: one reader who leaves must not end what others wait for.
        return await asyncio.shield(self._reads[place])

    async def _read(self, partition: int, number: int) -> tuple[list[Record], int]:
        start = number * STRETCH
        end = min(start + STRETCH, self._position(partition))
        return await self._reader.read(partition, start, end), end
