"""Index: a page's embedded chunks take the place of its previous revision.

    ingest.embeddings ─▶ index ─▶ Elasticsearch: chunks, old chunks go, then the head; refresh ─▶ ingest.receipts
                           └─▶ put aside, while other parts of the page are missing

A page in several parts commits as one. Each part is put aside, where no search looks, until all are there; the last
one writes the whole page. A part that is dead is never put aside, so its page is not touched, and the part that
is redriven days later completes it.

Written to be repeated: ids are deterministic, every write carries the revision as its version, and the page's head
record decides. Dying between any two steps leaves the message unacknowledged, and doing it again ends the same. Both
lanes, and a worker that was taken for dead, may write one page at once: a head only takes the place of the one its
writer has seen, so each winner knows the head that it replaced.

What lost to a newer revision, but stands behind it in a compacted topic, and what was made for an index that is not
live any more, is answered by sending the winning change through the pipeline again (requeue.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from pipelines.ingest.accept import newer
from pipelines.ingest.early_changes import regroup, with_pending_groups
from pipelines.ingest.heads import having_met, head_of, place_of, shows, wins
from pipelines.ingest.ports import ChunkAddress, HeadConflict, IndexReplaced, PageStore, Sites, Store
from schemas.head import Head, LogPositions
from schemas.ingest import PageEmbeddings, ReceiptEvent
from schemas.page import FIELDS, ChangeRef, FieldName


@dataclass(frozen=True)
class IndexOutcome:
    """The receipt event (none before the last part), and the change that must be sent through the pipeline again: to
    stand behind the losers in the topics, or to be remade for the index that is live now.
    """

    receipt: ReceiptEvent | None = None
    again: ChangeRef | None = None
    remake: ChangeRef | None = None


async def index_part(
    part: PageEmbeddings,
    sites: Sites[Store],
    now: Callable[[], datetime],
    embeddings_offset: int = 0,
    embeddings_in: int | None = None,
) -> IndexOutcome:
    """Apply one part of a change to the live index.

    Args:
        embeddings_offset: Where the part stands in ingest.embeddings, ...
        embeddings_in: ... and in which partition of it.

    Raises:
        IndexReplaced: another index was promoted meanwhile.
        Retryable, Permanent: from the store.
    """
    site = part.change.site
    if part.ahead:
        there = await sites.there(site)
        if there is None:
            return IndexOutcome()  # there is nothing to see, and the page comes the usual way, too
        store, embeddings_offset, embeddings_in = there, 0, None
    else:
        store = await sites.live(site, embedder=part.embedder, model=part.model, dims=part.dims, chunker=part.chunker)
    origin = LogPositions(
        changes=part.change.offset,
        chunks=part.chunks_offset,
        embeddings=embeddings_offset,
        changes_in=part.change.partition,
        chunks_in=part.chunks_in,
        embeddings_in=embeddings_in,
    )
    outcome = await (_apply_tombstone(part, store, origin) if part.superseded else apply_part(part, store, now, origin))
    # A rebuild that is promoted covers what was in the topics before the swap. So a write to the old index counts
    # only if that index was still the live one afterwards.
    if not await sites.still_live(store):
        raise IndexReplaced(
            f"{part.change.page_key}: another index of site {part.change.site} is being promoted", outcome.again
        )
    return outcome


async def apply_part(
    part: PageEmbeddings, store: PageStore, now: Callable[[], datetime], origin: LogPositions
) -> IndexOutcome:
    """Apply one part of a change, which stands at `origin`, to an index.

    Raises:
        Retryable, Permanent: from the store.
    """
    while True:
        before = (await store.heads([part.change.page_key])).get(part.change.page_key)
        with suppress(HeadConflict):
            return await _apply(part, before, store, now, origin)


async def _apply(
    part: PageEmbeddings,
    before: Head | None,
    store: PageStore,
    now: Callable[[], datetime],
    origin: LogPositions,
) -> IndexOutcome:
    """One try, by what the head was when it was read.

    What the head remembers, by an example; offsets in cms.changes, where compaction keeps a page's last record:

        offset  change      the page's head after it
        10      revision 7  7, at 10
        11      revision 5  7, at 10; a loser at 11, which would outlive 7 in the log: 7 is sent again
        12      revision 7  7, at 12; the loser at 11 stands before it, so compaction keeps the winner

    Raises:
        HeadConflict: another writer changed it in the moment of our writing.
        Retryable, Permanent: from the store.
    """
    change = part.change
    known = before is not None and not newer(change, before.change) and (change.op == "upsert" or not before.ahead)
    if part.ahead and known:
        return IndexOutcome()  # it is shown, or what wins over it
    # Of a page that is not shown yet there are no chunks that could win over those of another copy of its change.
    if before is not None and (newer if before.unseen else wins)(before.change, change):
        # An earlier try may have written chunks of ours before it died; the winner replaced only those it has, too.
        return await _superseded(part, origin, before, store, now)
    if part.ahead and change.op == "upsert":
        return IndexOutcome(await regroup(part, before, store, now, origin))
    if change.op == "upsert" and (part.model, part.chunker) != (store.model, store.chunker):
        return await _remake(part, before, store, now, origin)
    here = place_of(origin)
    places = {part.part: here}
    if part.parts > 1:
        kept = await store.kept(part)
        # What is not shown yet may be put together of several copies. One more copy of what is shown counts by itself.
        places |= {n: at for n, at in kept.items() if at.change == here.change or not shows(before, part)}
    gone = _addresses(before.counts, but=part.counts) if before else []
    head = head_of(part, store, origin, places, before, len(gone), now)
    if len(places) < part.parts:
        outcome = await _incomplete(part, before, store, origin, now)
        # Another index may be live when the next part comes, one that knows nothing of the losers.
        return IndexOutcome(outcome.receipt, again=change) if head.needs_requeue else outcome
    part, whole = with_pending_groups(part, before), True
    if gone or part.parts > 1:
        # Before the head: once it stands, nothing is left to be done again.
        for number in range(part.parts):
            piece = part if number == part.part else with_pending_groups(await store.take(part, number), before)
            whole &= await store.write(piece, None)
        await store.remove(change, gone)
        part = part.model_copy(update={"chunks": ()})
    whole &= await store.write(part, head)
    if not whole:
        # A newer change has written chunks, but not its head yet: until it does, ours stands in the index.
        return IndexOutcome(ReceiptEvent(change=change, state="superseded", at=now()))
    await store.refresh()
    if change.op == "delete" and (strays := await store.strays(change)):
        await store.remove(change, strays)
        await store.refresh()
    if part.parts > 1:
        await store.drop(part, places)
    receipt = ReceiptEvent(
        change=change,
        state="deleted" if change.op == "delete" else "searchable",
        at=head.settled_at,
        chunks=head.cost,
        notes=part.notes,
    )
    return IndexOutcome(receipt, again=change if head.needs_requeue else None)


async def _incomplete(
    part: PageEmbeddings, before: Head | None, store: PageStore, origin: LogPositions, now: Callable[[], datetime]
) -> IndexOutcome:
    """Other parts of the page are missing: this one is put aside, and what visitors see stays as it is."""
    if before is None or not shows(before, part):
        await store.keep(part, place_of(origin))
        return IndexOutcome()
    if before.change != part.change:
        await store.keep(part, place_of(origin))
        if part.part < part.parts - 1:
            return IndexOutcome()
        # Its other parts went with another copy. The log ends with it or with a later one, so it is sent again itself.
        await _note_place(part, before, store, origin)
        return IndexOutcome(again=part.change)
    if origin.embeddings > before.end.in_partitions_of(origin).embeddings:
        await store.keep(part, place_of(origin))  # one more copy of what is shown
        await _extend(part, before, store, origin)
    if part.part < part.parts - 1:
        return IndexOutcome(again=part.change if before.unplaced else None)
    await store.refresh()
    return _already_shown(part, before, now)


async def _apply_tombstone(part: PageEmbeddings, store: PageStore, origin: LogPositions) -> IndexOutcome:
    """Apply a tombstone: an empty part that overwrites, in the topic, one that the page's revision lacks.

    Where the change that the index shows does have a part of this number, the tombstone may stand behind it in the
    topic and outlive it there: then that change is sent again, as for a loser.
    """
    key, at = part.change.page_key, LogPositions(embeddings=origin.embeddings, embeddings_in=origin.embeddings_in)
    while shown := (await store.heads([key])).get(key):
        if newer(part.change, shown.change):
            break
        with suppress(HeadConflict):
            if part.part < shown.parts:
                return await _note_place(part, shown, store, at)
            await _extend(part, shown, store, at)
            break
    return IndexOutcome()


async def _extend(part: PageEmbeddings, shown: Head, store: PageStore, at: LogPositions) -> None:
    """Remember a record so far back in the topic: it harms nothing that is shown, but could harm a newer change.

    Raises: HeadConflict, Retryable, Permanent.
    """
    end = at.in_partitions_of(shown.origin).embeddings
    if end > shown.last_part and not shown.unplaced:  # a copy follows in any case
        await store.write(part.model_copy(update={"chunks": ()}), shown.model_copy(update={"last_part": end}))


async def _note_place(part: PageEmbeddings, shown: Head, store: PageStore, at: LogPositions) -> IndexOutcome:
    """Remember where something of no effect stands. Raises: HeadConflict, Retryable, Permanent."""
    head = having_met(shown, at)
    if head != shown:
        await store.write(part.model_copy(update={"chunks": ()}), head)
    return IndexOutcome(again=shown.change if head.needs_requeue else None)


async def _superseded(
    part: PageEmbeddings, origin: LogPositions, winner: Head, store: PageStore, now: Callable[[], datetime]
) -> IndexOutcome:
    """A newer change was there first: this one's chunks go, and where it stands behind the winner in a topic, the
    winner is sent again.
    """
    change = part.change
    # Elasticsearch refused our chunks where the winner has one of the same id; the others are removed here.
    if left := _addresses(part.counts, but=winner.counts):
        await store.remove(change, left)
        await store.refresh()  # the winner's refresh may have made them visible
    head = having_met(winner, origin)
    if (head.needs_requeue or head.ahead) and head != winner:
        await store.write(part.model_copy(update={"chunks": ()}), head)
    receipt = ReceiptEvent(change=change, state="superseded", at=now())
    return IndexOutcome(receipt, again=winner.change if head.needs_requeue else None)


async def _remake(
    part: PageEmbeddings, before: Head | None, store: PageStore, now: Callable[[], datetime], origin: LogPositions
) -> IndexOutcome:
    """Cut or embedded for another index, which was live a moment ago: made again for this one. Of several parts each
    says so: some may have come to the index before.
    """
    shown = before and (before.change, before.ahead, before.model, before.chunker)
    if before is None or shown != (part.change, False, store.model, store.chunker):
        return IndexOutcome(remake=part.change)
    await _extend(part, before, store, origin)
    await store.refresh()
    return _already_shown(part, before, now)


def _already_shown(part: PageEmbeddings, shown: Head, now: Callable[[], datetime]) -> IndexOutcome:
    """The change is shown already: by a rebuild (a save in the moment of the promotion has no receipt yet), or by an
    earlier try of ours that died between the head and the receipt.
    """
    receipt = ReceiptEvent(change=part.change, state="searchable", at=now(), chunks=shown.cost, notes=part.notes)
    return IndexOutcome(receipt, again=part.change if shown.unplaced or shown.needs_requeue else None)


def _addresses(counts: Mapping[FieldName, int], but: Mapping[FieldName, int] | None = None) -> list[ChunkAddress]:
    """Chunk addresses in `counts`, without those in `but`."""
    kept = but or {}
    return [(field, ord) for field in FIELDS for ord in range(kept.get(field, 0), counts.get(field, 0))]
