"""Receipts: what an editor reads about a page.

ingest.receipts ─▶ Elasticsearch (newest event per page)      event + head record ─▶ Receipt
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime

from cachetools import FIFOCache, TTLCache

from pipelines.ingest.ports import KnownPages
from pipelines.runtime.bus import MakeTail
from pipelines.runtime.errors import Retryable
from pipelines.runtime.record import Record
from schemas.base import WireError
from schemas.head import Head
from schemas.ingest import ChunkCounts, Receipt, ReceiptEvent, ReceiptState
from schemas.keys import page_key, parse_page_key
from schemas.page import ChangeRef

RECENT = 10_000  # receipts kept in mind
MANY = 10  # changes of a site that wait at once: more than editors save
FORGOTTEN_AFTER = 600  # seconds; of a change that never settles
CATCH_UP = 1.0  # seconds that a look waits for the topic before a page is called unknown
# Seconds until who waits looks again by itself. The event comes once, and the look it asks for may meet Elasticsearch
# in a bad moment, or the index that was live a moment ago (adapters.elastic.indexes.INFO_TTL).
LOOK_AGAIN = 2.5


def receipt(event: ReceiptEvent | None, head: Head | None) -> Receipt | None:
    """Put together the newest event of a page and what the index shows; None when both are missing."""
    if head is not None and head.unseen:
        head = None
    if head is None and event is None:
        return None
    if event is None or (head is not None and _shown(event, head)):
        assert head is not None
        return Receipt(
            page_key=head.change.page_key,
            accepted_revision=head.change.revision,
            searchable_revision=head.change.revision if head.state == "live" else None,
            state="searchable" if head.state == "live" else "deleted",
            chunks=head.cost,
            accepted_at=head.change.accepted_at,
            searchable_at=head.settled_at,
            lag_ms=_lag(head),
            notes=event.notes if event and _same(event.change, head.change) else (),
            reading=head.reading,
            labels=head.labels,
        )
    live = head is not None and head.state == "live"
    # A head is written before the refresh: in between either revision may be what is found, so none is named.
    shown = head if head and live and head.change.revision != event.change.revision else None
    # The index does not show this change (yet). An event that says it is searchable was written before a rollback
    # or a promotion made an index live that has not got it: then it is queued again.
    state: ReceiptState = "queued"
    if event.state == "failed" or (event.state == "deleted" and not live):
        state = event.state
    return Receipt(
        page_key=event.change.page_key,
        accepted_revision=event.change.revision,
        searchable_revision=shown.change.revision if shown else None,
        state=state,
        chunks=head.cost if head else ChunkCounts(),
        accepted_at=event.change.accepted_at,
        searchable_at=shown.settled_at if shown else None,
        lag_ms=None,
        error=f"{event.error.stage}: {event.error.reason}" if event.error else None,
        notes=event.notes,
        reading=shown.reading if shown else None,
        labels=shown.labels if shown else {},
    )


def _shown(event: ReceiptEvent, head: Head) -> bool:
    """Whether the change can be found. The head is written a moment before; the event that says so comes after, unless
    the change failed in between.
    """
    if event.change.revision == head.change.revision:
        return event.state not in ("queued", "failed")
    return event.change.revision < head.change.revision


def _same(a: ChangeRef, b: ChangeRef) -> bool:
    """Whether it is one change: a CMS may send a revision again, with other content."""
    return (a.revision, a.accepted_at) == (b.revision, b.accepted_at)


def _lag(head: Head) -> int:
    return max(0, round((head.settled_at - head.change.accepted_at).total_seconds() * 1000))


class ReceiptReader:
    """Reads receipts and waits for them. One per process; start it before waiting, close it last."""

    def __init__(self, pages: KnownPages, make_tail: MakeTail) -> None:
        self._pages = pages
        self._tail = make_tail(self._deliver)
        self._waiting: dict[str, set[asyncio.Event]] = defaultdict(set)
        self._hearing: list[set[str]] = []
        # A receipt is in the topic before the index stage has stored it: an editor must not read "unknown" meanwhile.
        self._recent: FIFOCache[str, ReceiptEvent] = FIFOCache(RECENT)
        self._queued: dict[str, TTLCache[str, None]] = {}  # by site; keys of pages whose newest change is not settled

    async def start(self) -> None:
        """Raises: Retryable: no broker."""
        await self._tail.start()

    async def aclose(self) -> None:
        await self._tail.aclose()

    async def receipt(self, site: str, lang: str, page_id: str) -> Receipt | None:
        """What became of the newest change of a page; None for a page never seen."""
        key = page_key(site, lang, page_id)
        if found := (await self.receipts(site, [key])).get(key):
            return found
        # Who was told a moment ago, here or by another gateway, that the page is accepted must not read "unknown".
        await self._tail.catch_up(key, CATCH_UP)
        return (await self.receipts(site, [key])).get(key)

    async def receipts(self, site: str, page_keys: Iterable[str]) -> dict[str, Receipt]:
        """Receipts by page key; pages never seen are missing."""
        keys = list(page_keys)
        heads, events = await asyncio.gather(self._pages.heads(site, keys), self._pages.receipts(keys))
        found: dict[str, Receipt] = {}
        for key in keys:
            recent, stored = self._recent.get(key), events.get(key)
            if one := receipt(_newer(recent, stored) if stored else recent, heads.get(key)):
                found[key] = one
        return found

    def is_importing(self, site: str) -> bool:
        """Whether many changes of the site are on their way into its index, as far as this process has seen."""
        return len(self._queued.get(site, ())) >= MANY

    @contextmanager
    def hearing(self) -> Iterator[set[str]]:
        """A set that gets the keys of all pages whose change was settled, until the block ends; who reads, clears."""
        heard: set[str] = set()
        self._hearing.append(heard)
        try:
            yield heard
        finally:
            self._hearing = [other for other in self._hearing if other is not heard]

    async def settled(self, page_key: str, change: tuple[int, datetime], timeout: float) -> Receipt | None:
        """The receipt once this change or a newer one can be found, is deleted or has failed.

        Args:
            change: its revision, and when it was accepted: of two changes with one revision the later one is newer.

        Returns:
            None when that takes longer than `timeout` seconds, or Elasticsearch was away for so long.
        """
        arrived = asyncio.Event()
        self._waiting[page_key].add(arrived)
        try:
            async with asyncio.timeout(timeout):
                return await self._settled(page_key, change, arrived)
        except TimeoutError:
            return None
        finally:
            self._waiting[page_key].discard(arrived)
            if not self._waiting[page_key]:
                del self._waiting[page_key]

    async def _settled(self, key: str, change: tuple[int, datetime], arrived: asyncio.Event) -> Receipt:
        site = parse_page_key(key).site
        while True:
            arrived.clear()  # before the look: what comes during it asks for another one
            with suppress(Retryable):
                now = (await self.receipts(site, [key])).get(key)
                if now and (now.accepted_revision, now.accepted_at) >= change and now.state != "queued":
                    return now
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_AGAIN):
                    await arrived.wait()

    def _deliver(self, record: Record) -> None:
        try:
            event = ReceiptEvent.decode(record.value)
        except WireError:
            return  # the index stage, which reads the topic too, makes a dead letter of it
        key = event.change.page_key
        self._recent[key] = newest = _newer(self._recent.get(key), event)
        site = parse_page_key(key).site
        if newest.state == "queued":
            self._queued.setdefault(site, TTLCache(RECENT, FORGOTTEN_AFTER))[key] = None
        elif site in self._queued:
            self._queued[site].pop(key, None)
        if event.state != "queued":
            for heard in self._hearing:
                heard.add(key)
            for arrived in self._waiting.get(key, ()):
                arrived.set()


def _newer(known: ReceiptEvent | None, other: ReceiptEvent) -> ReceiptEvent:
    return known if known is not None and known.order > other.order else other
