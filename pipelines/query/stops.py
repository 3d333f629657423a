"""Stops: which answers their visitors do not want any more.

    gateway ─▶ answer.stops ─▶ tail of every answer worker ─▶ the worker that writes this answer ends it
                   └─ read back for a question that was asked before the tail began: a stop outlives its worker

Every worker hears of every stop, since none knows who will write which answer, or who will have to write it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Protocol

from pipelines.query.publish import EventLog, earliest
from pipelines.runtime.record import Record
from schemas.query import Question

KEPT = 10_000  # stops in memory, about 1 MB; what is forgotten is read back


class Tail(Protocol):
    """Follows `answer.stops` from now on (adapters.kafka_log.LogTail)."""

    async def start(self) -> None: ...

    async def aclose(self) -> None: ...


class Stops:
    """One per process: start it before the first question."""

    def __init__(self, log: EventLog, make_tail: Callable[[Callable[[Record], None]], Tail]) -> None:
        self._log = log
        self._tail = make_tail(self._deliver)
        self._recent: dict[bytes, int] = {}  # request -> when, milliseconds since 1970; oldest first
        self._complete_since = 0  # from then on every stop is in `_recent`
        self._watched: dict[bytes, set[asyncio.Event]] = {}

    async def start(self) -> None:
        """Raises: Retryable: no broker."""
        await self._tail.start()
        self._complete_since = round(datetime.now(UTC).timestamp() * 1000)

    async def aclose(self) -> None:
        await self._tail.aclose()

    @asynccontextmanager
    async def watch(self, request: Question) -> AsyncIterator[asyncio.Event]:
        """An event that is set as soon as the visitor wants no more; at once if that was said already.

        Raises:
            Retryable: the log cannot be read.
        """
        key = request.request_id.encode()
        stopped = asyncio.Event()
        watching = self._watched.setdefault(key, set())
        watching.add(stopped)  # before the look at what was said: nothing falls between the two
        try:
            if key in self._recent or await self._said_before(request):
                stopped.set()
            yield stopped
        finally:
            watching.discard(stopped)
            if not watching:
                self._watched.pop(key, None)

    async def _said_before(self, request: Question) -> bool:
        since = earliest(request)
        if since > self._complete_since:
            return False
        return bool(await self._log.of_key(request.request_id, since))

    def _deliver(self, record: Record) -> None:
        key = record.key or b""
        for stopped in self._watched.get(key, ()):
            stopped.set()
        self._recent[key] = record.timestamp_ms
        if len(self._recent) > KEPT:
            forgotten = self._recent.pop(next(iter(self._recent)))
            self._complete_since = max(self._complete_since, forgotten)
