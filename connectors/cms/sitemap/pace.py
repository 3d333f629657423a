"""Limits requests to a website: their concurrency and rate, and longer pauses at its request."""

from __future__ import annotations

import asyncio
import time

from connectors.cms.fetching import LIMIT, Fetched, SafeFetch, ServerUnavailable

LONGEST_WAIT = 120.0  # seconds that a server may ask for; with longer ones, the page is left for the next run


class HostPace:
    """Requests to one host. `delay` (seconds) may be raised after robots.txt is read."""

    def __init__(self, fetch: SafeFetch, concurrency: int, delay: float) -> None:
        self._fetch = fetch
        self._slots = asyncio.Semaphore(concurrency)
        self._next_at = 0.0
        self.delay = delay

    async def get(
        self, url: str, *, etag: str | None = None, modified: str | None = None, limit: int = LIMIT
    ) -> Fetched:
        """As SafeFetch.get, but waits and retries once if the server asks for it (Retry-After)."""
        try:
            return await self._turn(url, etag, modified, limit)
        except ServerUnavailable as err:
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
