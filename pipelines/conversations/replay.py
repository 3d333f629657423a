"""Replay: reads missed `answer.events` for several readers together.

When a gateway restarts, all readers whose streams broke come back within a second or two. They have missed about the
same stretch of the log; readers that arrive while it is being read share that read.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable

from pipelines.runtime.bus import LogReader
from pipelines.runtime.record import Record

STRETCH = 1_000  # records of all answers in a partition, read at once and held only until they are filtered


class Replay:
    """One per process. `position`: of a partition's tail; records before it can be read."""

    def __init__(self, reader: LogReader, position: Callable[[int], int]) -> None:
        self._reader = reader
        self._position = position
        self._reads: dict[tuple[int, int], asyncio.Task[tuple[list[Record], int]]] = {}

    async def of_key(self, key: bytes, partition: int, start: int) -> AsyncGenerator[Record, None]:
        """Records of `key` from `start` up to the tail's current position.

        Raises: Retryable: the log cannot be read.
        """
        here = self._position(partition)
        while start < here:
            records, end = await self._stretch(partition, start // STRETCH)
            mine = [record for record in records if record.key == key and record.offset >= start]
            del records  # a slow reader must not hold other answers' records
            for record in mine:
                yield record
            # A shared read that began before may end before `here`: then the next one continues.
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
        # Shielded: a reader that leaves must not cancel the read of others.
        return await asyncio.shield(self._reads[place])

    async def _read(self, partition: int, number: int) -> tuple[list[Record], int]:
        start = number * STRETCH
        end = min(start + STRETCH, self._position(partition))
        return await self._reader.read(partition, start, end), end
