"""Receipts: what an editor reads about a page.

ingest.receipts ─▶ Elasticsearch (newest event per page)      event + head record ─▶ Receipt
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from typing import Protocol

from pipelines.ingest.accept import KnownPages
from pipelines.runtime.record import Record
from schemas.base import WireError
from schemas.head import Head
from schemas.ingest import ChunkCounts, Receipt, ReceiptEvent
from schemas.keys import page_key, parse_page_key

RECENT = 10_000  # receipts kept in mind
FINAL = ("searchable", "deleted", "failed", "superseded")


def receipt(event: ReceiptEvent | None, head: Head | None) -> Receipt | None:
    """Put together the newest event of a page and what the index shows; None when both are missing."""
    if head is None and event is None:
        return None
    if event is None or (head is not None and event.change.revision <= head.change.revision):
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
            notes=event.notes if event and event.change.revision == head.change.revision else (),
        )
    live = head is not None and head.state == "live"
    return Receipt(
        page_key=event.change.page_key,
        accepted_revision=event.change.revision,
        searchable_revision=head.change.revision if head and live else None,
        state=event.state if event.state != "superseded" else "queued",
        chunks=head.cost if head else ChunkCounts(),
        accepted_at=event.change.accepted_at,
        searchable_at=head.settled_at if head and live else None,
        lag_ms=None,
        error=f"{event.error.stage}: {event.error.reason}" if event.error else None,
        notes=event.notes,
    )


def _lag(head: Head) -> int:
    return max(0, round((head.settled_at - head.change.accepted_at).total_seconds() * 1000))


class Tail(Protocol):
    """Follows `ingest.receipts` (adapters.kafka_log.LogTail)."""

    async def start(self) -> None: ...

    async def aclose(self) -> None: ...


class ReceiptReader:
    """Reads receipts and waits for them. One per process; start it before waiting, close it last."""

    def __init__(self, pages: KnownPages, make_tail: Callable[[Callable[[Record], None]], Tail]) -> None:
        self._pages = pages
        self._tail = make_tail(self._deliver)
        self._waiting: dict[str, set[asyncio.Queue[ReceiptEvent]]] = defaultdict(set)
        # A receipt is in the topic before the index stage has stored it: an editor must not read "unknown" meanwhile.
        self._recent: OrderedDict[str, ReceiptEvent] = OrderedDict()

    async def start(self) -> None:
        """Raises: Retryable: no broker."""
        await self._tail.start()

    async def aclose(self) -> None:
        await self._tail.aclose()

    async def receipt(self, site: str, lang: str, page_id: str) -> Receipt | None:
        """What became of the newest change of a page; None for a page never seen."""
        key = page_key(site, lang, page_id)
        return (await self.receipts(site, [key])).get(key)

    async def receipts(self, site: str, page_keys: Iterable[str]) -> dict[str, Receipt]:
        """Receipts by page key; pages never seen are missing."""
        keys = list(page_keys)
        heads, events = await asyncio.gather(self._pages.heads(site, keys), self._pages.receipts(keys))
        found = {key: receipt(self._newest(key, events.get(key)), heads.get(key)) for key in keys}
        return {key: one for key, one in found.items() if one is not None}

    async def settled(self, page_key: str, revision: int, timeout: float) -> Receipt | None:
        """The receipt once this revision or a newer one can be found, is deleted or has failed.

        Returns:
            None when that takes longer than `timeout` seconds.
        """
        arrivals: asyncio.Queue[ReceiptEvent] = asyncio.Queue()
        self._waiting[page_key].add(arrivals)
        try:
            async with asyncio.timeout(timeout):
                return await self._settled(page_key, revision, arrivals)
        except TimeoutError:
            return None
        finally:
            self._waiting[page_key].discard(arrivals)
            if not self._waiting[page_key]:
                del self._waiting[page_key]

    async def _settled(self, key: str, revision: int, arrivals: asyncio.Queue[ReceiptEvent]) -> Receipt:
        site = parse_page_key(key).site
        now = (await self.receipts(site, [key])).get(key)
        if now and now.accepted_revision >= revision and now.state != "queued":
            return now
        while True:
            event = await arrivals.get()
            if event.change.revision >= revision and event.state in FINAL:
                head = (await self._pages.heads(site, [key])).get(key)
                settled = receipt(event, head)
                assert settled is not None
                return settled

    def _newest(self, key: str, stored: ReceiptEvent | None) -> ReceiptEvent | None:
        recent = self._recent.get(key)
        if stored is None or (recent is not None and recent.version > stored.version):
            return recent
        return stored

    def _deliver(self, record: Record) -> None:
        try:
            event = ReceiptEvent.decode(record.value)
        except WireError:
            return  # the index stage, which reads the topic too, makes a dead letter of it
        key = event.change.page_key
        self._recent[key] = self._newest(key, event) or event
        self._recent.move_to_end(key)
        if len(self._recent) > RECENT:
            self._recent.popitem(last=False)
        for arrivals in self._waiting.get(key, ()):
            arrivals.put_nowait(event)
