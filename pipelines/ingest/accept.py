"""Accept: a save at the edge becomes a durable change in the log.

    webhook / push / import ─▶ accept ─▶ cms.changes (and a `queued` receipt)

The revision decides between old and new, never arrival. A change without one gets milliseconds since 1970, strictly
growing per page. A change that is older than the newest one known, accepted (receipts) or shown (heads), is not put
into the log at all; the rare one that slips past this look (a race, Elasticsearch away) loses at the index stage,
which puts the winner back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from cachetools import FIFOCache

from pipelines.ingest.ports import KnownPages
from pipelines.ingest.settings import IntakeSettings
from pipelines.runtime.bus import Producer
from pipelines.runtime.errors import Retryable, TooLarge
from pipelines.runtime.record import Lane
from schemas.base import MAX_REVISION
from schemas.ingest import ReceiptEvent
from schemas.page import ChangeRef, Op, PageChange, PageDocument
from schemas.topics import CHANGES, MAX_MESSAGE_BYTES, RECEIPTS

log = logging.getLogger(__name__)

LOOK_TIMEOUT = 2.0  # seconds; the log is the truth, so a save does not wait longer for the index
REMEMBERED = 100_000  # pages whose last revision this process keeps in mind


@dataclass(frozen=True)
class Change:
    """A change as it comes in: for a delete only `page.id`, `page.lang` and `page.revision` count."""

    op: Op
    page: PageDocument


@dataclass(frozen=True)
class Acceptance:
    """A change that is durable (`revision` is its own), or one that lost to a newer revision (`superseded`).

    `accepted_at` tells a change from an earlier one of the same revision.
    """

    page_key: str
    revision: int
    accepted_at: datetime
    superseded: bool = False


def newer(a: ChangeRef | PageChange, b: ChangeRef | PageChange) -> bool:
    """Whether `a` wins over `b`: the higher revision; at the same one a delete stays a delete."""
    return (a.revision, a.op == "delete") > (b.revision, b.op == "delete")


def check_size(page: PageDocument, limit: int) -> None:
    """Raises: TooLarge: `content` is over `limit` bytes of UTF-8."""
    size = len(page.content.encode())
    if size > limit:
        raise TooLarge(
            f"content of page {page.id!r} is {size:,} bytes; the limit is {limit:,} (PAGEWIRE_CONTENT_LIMIT)"
        )


class Intake:
    """Puts changes into the log. One per process."""

    def __init__(
        self,
        sender: Producer,
        pages: KnownPages,
        settings: IntakeSettings,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._sender = sender
        self._pages = pages
        self._settings = settings
        self._now = now
        self._last: FIFOCache[str, int] = FIFOCache(REMEMBERED)

    async def accept(self, site: str, changes: Sequence[Change], source: str, lane: Lane = "save") -> list[Acceptance]:
        """Put the changes into the log, in order; returns when the broker has them all.

        Args:
            lane: `bulk` for changes that no editor waits for: saves overtake them.

        Raises:
            UnknownSite: not in pagewire.yaml.
            TooLarge: one of the pages; none was accepted.
            Retryable: the broker does not take them; some may have been accepted, send them all again.
        """
        default_lang = self._settings.site(site).languages[0]
        at = self._now()
        blank: list[PageChange] = []
        for change in changes:
            check_size(change.page, self._settings.content_limit)
            blank.append(_change(site, change, default_lang, at, source))
        known: dict[str, ChangeRef | PageChange] = dict(await self._look(site, {c.page_key for c in blank}))
        accepted: list[Acceptance] = []
        sends: list[PageChange] = []
        for draft, given in zip(blank, changes, strict=True):
            key = draft.page_key
            winner = known.get(key)
            numbered = self._numbered(draft, winner.revision if winner else -1, given.page.revision)
            superseded = winner is not None and newer(winner, numbered)
            accepted.append(Acceptance(key, numbered.revision, at, superseded))
            if not superseded:
                known[key] = numbered
                sends.append(numbered)
        await self._send(sends, lane)
        return accepted

    def _numbered(self, change: PageChange, highest: int, given: int | None) -> PageChange:
        key = change.page_key
        last = max(self._last.get(key, -1), highest)
        revision = given
        if revision is None:
            # No revision is above the highest one. If a CMS has sent that, the last save takes its place.
            revision = min(max(round(change.accepted_at.timestamp() * 1000), last + 1), MAX_REVISION)
        self._last[key] = max(last, revision)
        return change.model_copy(update={"revision": revision})

    async def _look(self, site: str, keys: set[str]) -> dict[str, ChangeRef]:
        """The winning change per page as far as the index knows, accepted or shown."""
        try:
            async with asyncio.timeout(LOOK_TIMEOUT):
                heads, receipts = await asyncio.gather(self._pages.heads(site, keys), self._pages.receipts(keys))
        except (Retryable, TimeoutError) as err:
            log.warning("accepting without a look at the index: %s", str(err) or "Elasticsearch does not answer")
            return {}
        found = {key: head.change for key, head in heads.items()}
        for key, event in receipts.items():
            if key not in found or newer(event.change, found[key]):
                found[key] = event.change
        return found

    async def _send(self, changes: Sequence[PageChange], lane: Lane) -> None:
        """Changes of a page in order; pages side by side."""
        for change in changes:
            size = len(change.encode())
            if size > MAX_MESSAGE_BYTES:
                raise TooLarge(
                    f"page {change.page_id!r} is {size:,} bytes as a message; the limit is {MAX_MESSAGE_BYTES:,}"
                )
        pages: dict[str, list[PageChange]] = {}
        for change in changes:
            pages.setdefault(change.page_key, []).append(change)
        await asyncio.gather(*(self._send_page(history, lane) for history in pages.values()))

    async def _send_page(self, history: Sequence[PageChange], lane: Lane) -> None:
        for change in history:
            await self._sender.send(CHANGES, change.page_key, change, lane=lane)
        await self._sender.send(RECEIPTS, history[-1].page_key, queued(history[-1]), lane=lane)


def _change(site: str, change: Change, default_lang: str, at: datetime, source: str) -> PageChange:
    page = change.page
    lang = page.lang or default_lang
    return PageChange(
        op=change.op,
        site=site,
        lang=lang,
        page_id=page.id,
        revision=page.revision or 0,
        accepted_at=at,
        source=source,
        page=page.model_copy(update={"lang": lang}) if change.op == "upsert" else None,
    )


def queued(change: PageChange) -> ReceiptEvent:
    """The event of a change that is in the log and no further."""
    # The log position is not known here and means nothing for a queued receipt.
    ref = reference(change, partition=0, offset=0)
    return ReceiptEvent(change=ref, state="queued", at=change.accepted_at)


def reference(change: PageChange, partition: int, offset: int) -> ChangeRef:
    """The part of a change that rides along to its receipt."""
    return ChangeRef(
        op=change.op,
        site=change.site,
        lang=change.lang,
        page_id=change.page_id,
        revision=change.revision,
        accepted_at=change.accepted_at,
        partition=partition,
        offset=offset,
    )
