"""The ingest stages' handlers: decode, call, send. What they do stands in accept, chunk, embed and index.

cms.changes ─▶ chunk ─▶ ingest.chunks ─▶ embed ─▶ ingest.embeddings ─▶ index ─▶ Elasticsearch, ingest.receipts
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

from pipelines.ingest.accept import reference
from pipelines.ingest.chunk import chunk_page
from pipelines.ingest.documents.attachments import NOTHING, Attached, AttachmentsAway, Unread
from pipelines.ingest.documents.convert import convert
from pipelines.ingest.early_changes import early_part
from pipelines.ingest.embed import Embedding
from pipelines.ingest.index import index_part
from pipelines.ingest.ports import IndexReplaced, Sites
from pipelines.ingest.requeue import Requeuer
from pipelines.runtime import metrics, tracing
from pipelines.runtime.bus import LogReader
from pipelines.runtime.dead_letters import DeadLetter
from pipelines.runtime.record import Lane, Record
from pipelines.runtime.stage import Handler, OnDead, Sender
from schemas.base import WireError
from schemas.ingest import Chunker, Failure, PageChunks, PageEmbeddings, ReceiptEvent
from schemas.keys import ahead_key, page_of_part, part_key
from schemas.labels import fitting_labels
from schemas.page import ChangeRef, PageChange, PageDocument, PageMeta, PageMetadata
from schemas.topics import CHUNKS, EMBEDDINGS, MAX_MESSAGE_BYTES, RECEIPTS

# A larger page is converted in a thread: it may take seconds. A small one takes a few milliseconds, and in a thread
# ten times as many: the parser lets go of the interpreter's lock at every tag, and waits for the loop to do so, too.
AT_ONCE = 10_000  # bytes
# Tries of a page whose attachments' server does not answer, some ten seconds in all; later saves of the page wait.
AWAY_TRIES = 6
NOTHING_TO_FIND = "there is nothing in it that a search could find: no text and no title"
CHUNKS_ROOM = MAX_MESSAGE_BYTES - 256 * 1024  # headers and the rest of the batch

PutReceipt = Callable[[ReceiptEvent, Lane], Awaitable[None]]


def now() -> datetime:
    return datetime.now(UTC)


def chunk_handler(
    chunker_of: Callable[[str], Awaitable[Chunker]],
    read: Callable[[str, PageDocument], Awaitable[Attached]],
    superseded: Callable[[ChangeRef], Awaitable[bool]],
) -> Handler:
    """A change becomes chunks, cut as the site's live index wants them; `read` gives the text of a site's
    attachments, and `superseded` says whether the index shows a newer revision of the page.

    A page does not wait for its attachments. When their server does not answer, the page goes on without them at the
    first try, and is tried again for them; a try that gets them sends the page once more, with their text. What could
    not be read in the end makes the message a dead letter (`Unread`), although the page itself is searchable: no
    receipt says `failed`, and a redrive reads the attachments again. A superseded change has no dead letter: the newer
    revision has its own.
    """

    async def handle(record: Record, sender: Sender) -> None:
        change = _keyed(record, PageChange.decode(record.value))
        chunker = await chunker_of(change.site)
        attached = await read(change.site, change.page) if change.page and change.page.attachments else NOTHING
        waiting = attached.away and record.attempt < AWAY_TRIES
        if not waiting or record.attempt == 1:  # the page does not wait for its attachments
            if attached is NOTHING and len(record.value or b"") <= AT_ONCE:
                page = chunked(change, chunker, record.partition, record.offset)
            else:
                page = await asyncio.to_thread(chunked, change, chunker, record.partition, record.offset, attached)
            await sender.send(CHUNKS, change.page_key, page)
            if ahead := early_part(page):
                key = change.page_key
                await sender.send(EMBEDDINGS, ahead_key(key), ahead, partition_key=key)
        if waiting:
            raise AttachmentsAway("; ".join(attached.failed))
        if attached.failed and not await superseded(reference(change, record.partition, record.offset)):
            raise Unread("; ".join(attached.failed))

    return handle


def chunked(
    change: PageChange, chunker: Chunker, partition: int, offset: int, attached: Attached = NOTHING
) -> PageChunks:
    """Convert and cut one change, which stands at `partition`/`offset` of the log."""
    page = change.page
    converted = convert(page, change.lang) if page else None
    chunks = chunk_page(converted.fields, chunker, attached.pieces) if converted else ()
    notes = (*attached.notes, *(converted.notes if converted else ()))
    cut = PageChunks(
        change=reference(change, partition, offset),
        meta=_meta(page, converted.metadata) if page and converted else None,
        chunker=chunker,
        chunks=chunks,
        notes=notes if chunks or page is None else (*notes, NOTHING_TO_FIND),
        reading=converted.reading if converted else None,
    )
    if attached.pieces and len(cut.encode()) > CHUNKS_ROOM:
        note = "the attachments are not searchable: together with the page they are too large for one message"
        return chunked(change, chunker, partition, offset, Attached(notes=(*attached.notes, note)))
    return cut


def _meta(page: PageDocument, said: PageMetadata) -> PageMeta:
    """What the page's hits show. Its labels are those of its CMS, and under other keys what it says of itself."""
    name = (page.title or page.name).casefold()
    above = [each for each in said.breadcrumbs if each.casefold() != name]
    own = {"type": [said.page_kind], "author": said.authors, "breadcrumb": above}
    return PageMeta(
        title=page.title or page.name,
        url=page.url,
        groups=page.groups,
        labels=fitting_labels({**page.labels, **own, **page.labels}),  # its CMS comes first, and is right
        page_kind=said.page_kind,
        published_at=said.published_at,
        changed_at=said.changed_at or page.changed_at,
    )


def embed_handler(embedding: Embedding) -> Handler:
    """Chunks become vectors, known ones without asking the model."""

    async def handle(record: Record, sender: Sender) -> None:
        page = PageChunks.decode(record.value)
        key = _keyed(record, page.change).page_key
        for part in await embedding.embed(page, record.offset):
            placed = part.model_copy(update={"chunks_in": record.partition})
            await sender.send(EMBEDDINGS, part_key(key, part.part), placed, partition_key=key)

    return handle


def index_handler(sites: Sites[Any], log: LogReader) -> Handler:
    """Vectors become searchable, and the editor gets a receipt."""
    requeuer = Requeuer(log)

    async def handle(record: Record, sender: Sender) -> None:
        part = PageEmbeddings.decode(record.value)
        _keyed(record, part.change)
        try:
            outcome = await index_part(part, sites, now, record.offset, record.partition)
        except IndexReplaced as moved:
            if moved.again:
                await requeuer.send_again(moved.again, sender)
            raise
        if outcome.again:
            await requeuer.send_again(outcome.again, sender)
        if outcome.remake:
            await requeuer.send_again(outcome.remake, sender, lane=None)
        if outcome.receipt:
            await sender.send(RECEIPTS, part.change.page_key, outcome.receipt)
            if outcome.receipt.state == "searchable":
                waited = (outcome.receipt.at - part.change.accepted_at).total_seconds()
                metrics.SEARCHABLE_SECONDS.labels(record.lane).observe(max(0.0, waited), tracing.exemplar())

    return handle


def receipt_handler(put: PutReceipt) -> Handler:
    """Receipts are kept where they can be looked up."""

    async def handle(record: Record, sender: Sender) -> None:
        event = ReceiptEvent.decode(record.value)
        _keyed(record, event.change)
        await put(event, record.lane)

    return handle


def failed_receipt(stage: str, change_of: Callable[[Record], ChangeRef]) -> OnDead:
    """Send a receipt that a change ended as a dead letter, if the message names the change."""

    async def tell(record: Record, letter: DeadLetter, sender: Sender) -> None:
        if letter.code == Unread.code:
            return  # the page is searchable, and its receipt says what is not
        try:
            change = change_of(record)
        except WireError:
            return  # not even a change can be read from it: the dead letter is all there is
        failure = Failure(stage=stage, reason=letter.message)
        event = ReceiptEvent(change=change, state="failed", at=now(), error=failure)
        await sender.send(RECEIPTS, change.page_key, event)

    return tell


def change_in_log(record: Record) -> ChangeRef:
    return reference(_keyed(record, PageChange.decode(record.value)), record.partition, record.offset)


def change_of_chunks(record: Record) -> ChangeRef:
    return _keyed(record, PageChunks.decode(record.value).change)


def change_of_part(record: Record) -> ChangeRef:
    return _keyed(record, PageEmbeddings.decode(record.value).change)


Keyed = TypeVar("Keyed", PageChange, ChangeRef)


def _keyed(record: Record, change: Keyed) -> Keyed:
    """The change, if the record's key is that of its page: with another key nothing would keep the page's changes in
    order.

    Raises:
        WireError: naming both.
    """
    key = (record.key or b"").decode(errors="replace")
    if page_of_part(key) != change.page_key:
        raise WireError(f"the key is {key!r}, but the message speaks of {change.page_key!r}")
    return change
