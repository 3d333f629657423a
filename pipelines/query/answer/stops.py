"""Stops: the answers that their visitors have stopped.

    gateway ─▶ answer.stops ─▶ tail of every answer worker ─▶ the worker that writes this answer ends it
                   ├─ read back at the start, since a stop must survive a restart
                   └─ read back for a question that was asked long before the start

Every worker reads every stop, since any worker may write an answer, or write it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import structlog

from pipelines.query.publish import CLOCK_SKEW_MS, earliest
from pipelines.runtime.bus import LogReader, MakeTail
from pipelines.runtime.errors import Retryable
from pipelines.runtime.record import Record
from schemas.base import WireError
from schemas.query import Question, Stop

log = structlog.get_logger(__name__)

# What was said so long before the start is read then, once for all questions that may still be answered: until their
# deadline of 90 s, and by clocks that are wrong. A look for each question costs more than the rest of the bus together.
READ_BACK_MS = 90_000 + 2 * CLOCK_SKEW_MS
KEPT = 10_000  # stops in memory, about 1 MB; what is forgotten is read back


class Stops:
    """All stops. One per process: start it before the first question."""

    def __init__(self, log: LogReader, make_tail: MakeTail) -> None:
        self._log = log
        self._tail = make_tail(self._deliver)
        # Request and site -> when, milliseconds since 1970; oldest first. A stop of another site counts for nothing,
        # so it must not take the place of one that counts. No site: it was said before stops had one. No cache of a
        # library: what is forgotten moves `_complete_since`.
        self._recent: dict[tuple[bytes, str | None], int] = {}
        self._complete_since = 0  # from then on every stop is in `_recent`
        self._watched: dict[bytes, set[tuple[str, asyncio.Event]]] = {}

    async def start(self) -> None:
        """Raises: Retryable: no broker."""
        since = round(datetime.now(UTC).timestamp() * 1000) - READ_BACK_MS
        await self._tail.start()  # before the look back: nothing falls between the two
        try:
            said = await self._log.since(since)
        except Retryable:
            await self._tail.aclose()
            raise
        self._complete_since = since
        for record in sorted(said, key=lambda record: record.timestamp_ms):
            self._deliver(record)

    async def aclose(self) -> None:
        await self._tail.aclose()

    @asynccontextmanager
    async def watch(self, request: Question) -> AsyncIterator[asyncio.Event]:
        """An event that is set when the visitor stops the answer, at once if the stop is already there.

        Only stops of the request's own site count, so that visitors of other sites cannot stop it.

        Raises: Retryable: the log cannot be read.
        """
        key, site = request.request_id.encode(), request.site
        stopped = asyncio.Event()
        watching = self._watched.setdefault(key, set())
        watching.add((site, stopped))  # before the look at what was said: nothing falls between the two
        try:
            if (key, site) in self._recent or (key, None) in self._recent or await self._said_before(request):
                stopped.set()
            yield stopped
        finally:
            watching.discard((site, stopped))
            if not watching:
                self._watched.pop(key, None)

    async def _said_before(self, request: Question) -> bool:
        since = earliest(request)
        if since > self._complete_since:
            return False
        said = map(_stop_in, await self._log.of_key(request.request_id, since))
        return any(stop.site in (None, request.site) for stop in said if stop)

    def _deliver(self, record: Record) -> None:
        stop, key = _stop_in(record), record.key or b""
        if stop is None:
            return
        for site, stopped in self._watched.get(key, ()):
            if stop.site in (None, site):
                stopped.set()
        self._recent[key, stop.site] = record.timestamp_ms
        if len(self._recent) > KEPT:
            forgotten = self._recent.pop(next(iter(self._recent)))
            self._complete_since = max(self._complete_since, forgotten)


def _stop_in(record: Record) -> Stop | None:
    """The stop in a record; None for an unreadable record, which must not block other stops or answers."""
    try:
        return Stop.decode(record.value)
    except WireError as err:
        log.warning("not a stop", partition=record.partition, offset=record.offset, error=str(err))
        return None
