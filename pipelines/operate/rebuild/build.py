"""Build: the stage that writes pages into new indexes, as rebuilds order it (orders.py).

    rebuild.orders ─▶ build: cut ─▶ embed ─▶ the index that the order names ─▶ rebuild.results
                        └─▶ nothing, if that index is gone

It writes to that index only, and sends no receipts: the ingest stages do that for the live index. It runs in the bulk
lane, so saves go first, and has a topic of its own, so other sites' imports do not wait behind it.
"""

from __future__ import annotations

from dataclasses import dataclass

from cachetools import TTLCache

from pipelines.ingest.accept import reference
from pipelines.ingest.embed import Embedding
from pipelines.ingest.ports import KnownPages, PageStore
from pipelines.operate.rebuild.generations import Indexes
from pipelines.operate.rebuild.page_builder import (
    BatchedPageStore,
    BuildTarget,
    Built,
    PageBuilder,
    ReadAttachments,
    SourceMessage,
    origin_of,
)
from pipelines.runtime.bus import LogReader
from pipelines.runtime.dead_letters import DeadLetter
from pipelines.runtime.embedder import Embedders
from pipelines.runtime.errors import WrongUse
from pipelines.runtime.indexes import IndexGone
from pipelines.runtime.record import Record
from pipelines.runtime.stage import Handler, Sender
from schemas.base import WireError
from schemas.rebuild import OrderOutcome, PageBuilt, PageOrder
from schemas.topics import RESULTS

KNOWN_TTL = 2.0  # seconds until a worker notices that an index is gone, and drops its orders
KNOWN = 1_000  # indexes


@dataclass(frozen=True)
class _Site:
    """An index that is being built."""

    target: BuildTarget
    store: PageStore


@dataclass(eq=False)
class OrderedPages:
    """Fills orders. One per process."""

    indexes: Indexes
    pages: KnownPages
    embedders: Embedders
    changes: LogReader
    read: ReadAttachments  # the text of a page's attachments

    def __post_init__(self) -> None:
        self._embedding = Embedding(self.embedders, self.pages, urgent=False)
        self._known: TTLCache[str, _Site | None] = TTLCache(KNOWN, KNOWN_TTL)

    async def fill(self, order: PageOrder) -> Built | None:
        """What was written; None: the index is gone, so the rebuild has ended.

        Raises: Retryable, Permanent. WrongUse: no page of this index can be built here.
        """
        site = order.change.site
        there = self._known.get(order.index) or await self._look(site, order.index)
        if there is None:
            return None
        try:
            return await self._fill(order, there)
        except IndexGone:
            if await self._look(site, order.index) is None:
                return None
            raise

    async def _look(self, site: str, index: str) -> _Site | None:
        if index in self._known and self._known[index] is None:
            return None
        found = [info for info in await self.indexes.generations(site) if info.name == index]
        there = _Site(BuildTarget.of(found[0], self.embedders), self.pages.at(found[0])) if found else None
        self._known[index] = there
        return there

    async def _fill(self, order: PageOrder, there: _Site) -> Built:
        change = reference(order.change, order.partition, order.offset)
        key = change.page_key
        heads = await there.store.heads([key])
        head = heads.get(key)
        if head is not None and head.change.revision == change.revision and there.target.shown(change, head):
            return Built(
                pages=1, chunks=sum(head.counts.values())
            )  # built before a crash, and before its result was sent
        # Also a change that loses to a newer one: an earlier try may have left chunks, which are deleted now.
        shown = await self.pages.heads(change.site, [key])
        store = BatchedPageStore(there.store, heads, shown)
        builder = PageBuilder(there.target, self._embedding, self.changes, self.read)
        return await builder.build(SourceMessage(change, whole=order.change, origin=origin_of(change)), store)


def build_handler(pages: OrderedPages) -> Handler:
    """Build the page of an order, and send the result to the rebuild."""

    async def handle(record: Record, sender: Sender) -> None:
        order = _ordered(record)
        try:
            built = await pages.fill(order)
        except WrongUse as err:  # the rebuild shows it to the operator
            await _send_result(sender, order, "refused", reason=str(err))
            return
        if built is not None:
            await _send_result(sender, order, "built", built)

    return handle


async def failed_build(record: Record, letter: DeadLetter, sender: Sender) -> None:
    """Send the result that the order is a dead letter. No receipt: the live page is unchanged."""
    try:
        order = _ordered(record)
    except WireError:
        return
    await _send_result(sender, order, "failed", reason=letter.message)


async def _send_result(
    sender: Sender, order: PageOrder, outcome: OrderOutcome, built: Built | None = None, reason: str = ""
) -> None:
    made = built or Built()
    result = PageBuilt(
        run=order.run,
        index=order.index,
        page_key=order.change.page_key,
        partition=order.partition,
        offset=order.offset,
        outcome=outcome,
        pages=made.pages,
        chunks=made.chunks,
        embedded=made.embedded,
        reason=reason,
    )
    await sender.send(RESULTS, order.index, result)


def _ordered(record: Record) -> PageOrder:
    """The parsed order. Raises: WireError: no order, or its key is of another page, so it has no order key."""
    order = PageOrder.decode(record.value)
    key = (record.key or b"").decode(errors="replace")
    if key != order.change.page_key:
        raise WireError(f"the key is {key!r}, but the message speaks of {order.change.page_key!r}")
    return order
