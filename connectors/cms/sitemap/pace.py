"""Asking a stranger's server politely: so many requests at once, so long between two, and later when it says so."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

from connectors.cms.fetching import LIMIT, Away, Fetched

LONGEST_WAIT = 120.0  # seconds that a server may ask for; what wants longer is left for the next run


class Fetches(Protocol):
    """connectors.cms.fetching.SafeFetch."""

    async def get(
        self, url: str, *, etag: str | None = None, modified: str | None = None, limit: int = LIMIT
    ) -> Fetched: ...


class Pace:
    """Requests to one host. `delay` in seconds may be raised when robots.txt is known."""

    def __init__(self, fetch: Fetches, concurrency: int, delay: float) -> None:
        self._fetch = fetch
        self._slots = asyncio.Semaphore(concurrency)
        self._next_at = 0.0
        self.delay = delay

    async def get(
        self, url: str, *, etag: str | None = None, modified: str | None = None, limit: int = LIMIT
    ) -> Fetched:
        """As SafeFetch.get; a server that asks for some patience gets it, once."""
        try:
            return await self._turn(url, etag, modified, limit)
        except Away as err:
            if err.retry_after is None or err.retry_after > LONGEST_WAIT:
                raise
            self._next_at = max(self._next_at, time.monotonic() + err.retry_after)  # for all requests
            return await self._turn(url, etag, modified, limit)

    async def _turn(self, url: str, etag: str | None, modified: str | None, limit: int) -> Fetched:
        async with self._slots:
            now = time.monotonic()
            at = max(now, self._next_at)
            self._next_at = at + self.delay
            await asyncio.sleep(at - now)
            return await self._fetch.get(url, etag=etag, modified=modified, limit=limit)
