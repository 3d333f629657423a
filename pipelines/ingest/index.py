"""Index: a page's embedded chunks take the place of its previous revision.

    ingest.embeddings ─▶ index ─▶ Elasticsearch: chunks, old chunks go, then the head; refresh ─▶ ingest.receipts
                           └─▶ put aside, while other parts of the page are missing

A page in several parts commits as one. Each part is put aside, where no search looks, until all are there; whichever
comes last writes the whole page. A part that is dead is never put aside, so its page is not touched, and the part that
is redriven days later completes it.

Written to be repeated: ids are deterministic, every write carries the revision as its version, and the page's head
record decides. Dying between any two steps leaves the message unacknowledged, and doing it again ends the same. Both
lanes, and a worker that was taken for dead, may write one page at once: a head only takes the place of the one its
writer has seen, so each winner knows whom it replaced.

What lost to a newer revision, but stands behind it in a compacted topic, and what was made for an index that is not
live any more, is answered by sending the winning change through the pipeline again (requeue.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from pipelines.ingest.accept import newer
from pipelines.ingest.ahead import narrowed, regroup
from pipelines.ingest.ports import ChunkAddress, HeadConflict, IndexReplaced, PageStore, Place, Sites, Store
from schemas.head import Head, Origin
from schemas.ingest import ChunkCounts, PageEmbeddings, ReceiptEvent
from schemas.page import FIELDS, ChangeRef, FieldName


@dataclass(frozen=True)
class Outcome:
    """What to tell the editor (nothing before the last part), and what must be sent through the pipeline again."""

    receipt: ReceiptEvent | None = None
    again: ChangeRef | None = None


async def index_part(
    part: PageEmbeddings,
    sites: Sites[Store],
    now: Callable[[], datetime],
    embeddings_offset: int = 0,
    embeddings_in: int | None = None,
) -> Outcome:
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
            return Outcome()  # there is nothing to see, and the page comes the usual way, too
        store, embeddings_offset, embeddings_in = there, 0, None
    else:
        store = await sites.live(site, embedder=part.embedder, model=part.model, dims=part.dims, chunker=part.chunker)
    origin = Origin(
        changes=part.change.offset,
        chunks=part.chunks_offset,
        embeddings=embeddings_offset,
        changes_in=part.change.partition,
        chunks_in=part.chunks_in,
        embeddings_in=embeddings_in,
    )
    outcome = await (_overwritten(part, store, origin) if part.superseded else apply_part(part, store, now, origin))
    # A rebuild that is promoted covers what was in the topics before the swap. So whoever wrote to the old index may
    # only say so if it was still the live one afterwards.
    if not await sites.still_live(store):
        raise IndexReplaced(
            f"{part.change.page_key}: another index of site {part.change.site} is being promoted", outcome.again
        )
    return outcome


async def apply_part(part: PageEmbeddings, store: PageStore, now: Callable[[], datetime], origin: Origin) -> Outcome:
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
    origin: Origin,
) -> Outcome:
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
        return Outcome()  # it is shown, or what wins over it
    # Of a page that is not shown yet there are no chunks that could win over those of another copy of its change.
    if before is not None and (newer if before.unseen else _wins)(before.change, change):
        # An earlier try may have written chunks of ours before it died; the winner replaced only those it has, too.
        return await _lost(part, origin, before, store, now)
    if part.ahead and change.op == "upsert":
        return Outcome(await regroup(part, before, store, now, origin))
    last = part.part == part.parts - 1
    if change.op == "upsert" and (part.model, part.chunker) != (store.model, store.chunker):
        return await _misfit(part, before, store, now) if last else Outcome()
    places = {part.part: _here(origin)}
    if part.parts > 1:
        places |= await store.kept(part)
    gone = _addresses(before.counts, but=part.counts) if before else []
    head = _head(part, store, origin, places, before, len(gone), now)
    if len(places) < part.parts:
        outcome = await _incomplete(part, before, store, origin, now)
        # Another index may be live when the next part comes, one that knows nothing of the losers.
        return Outcome(outcome.receipt, again=change) if head.needs_requeue else outcome
    part, whole = narrowed(part, before), True
    if gone or part.parts > 1:
        # Before the head: once it stands, nothing is left to be done again.
        for number in range(part.parts):
            piece = part if number == part.part else narrowed(await store.take(part, number), before)
            whole &= await store.write(piece, None)
        await store.remove(change, gone)
        part = part.model_copy(update={"chunks": ()})
    whole &= await store.write(part, head)
    if not whole:
        # A newer change has written chunks, but not its head yet: until it does, ours stands in the index.
        return Outcome(ReceiptEvent(change=change, state="superseded", at=now()))
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
    return Outcome(receipt, again=change if head.needs_requeue else None)


async def _incomplete(
    part: PageEmbeddings, before: Head | None, store: PageStore, origin: Origin, now: Callable[[], datetime]
) -> Outcome:
    """Other parts of the page are missing: this one is put aside, and what visitors see stays as it is."""
    shows = (before.change, before.model, before.chunker) if before else None
    if before is None or before.ahead or shows != (part.change, part.model, part.chunker):
        await store.keep(part, _here(origin))
        if before is not None and not before.ahead and part.part == part.parts - 1 and _same(part, before):
            # Its other parts went with the copy that is shown. It must not outlive a newer change that comes later.
            return await _met(part, before, store, origin)
        return Outcome()
    if origin.embeddings > before.end.in_partitions_of(origin).embeddings:
        await store.keep(part, _here(origin))  # one more copy of what is shown
    if part.part < part.parts - 1:
        return Outcome()
    await store.refresh()
    return _told(part, before, now)


async def _overwritten(part: PageEmbeddings, store: PageStore, origin: Origin) -> Outcome:
    """Take note of a tombstone: an empty part that overwrites, in the topic, one that the page's revision lacks.

    Where the change that the index shows does have a part of this number, the tombstone may stand behind it in the
    topic and outlive it there: then that change is sent again, as for a loser.
    """
    key = part.change.page_key
    while shown := (await store.heads([key])).get(key):
        if part.part >= shown.parts or newer(part.change, shown.change):
            break
        with suppress(HeadConflict):
            return await _met(
                part, shown, store, Origin(embeddings=origin.embeddings, embeddings_in=origin.embeddings_in)
            )
    return Outcome()


async def _met(part: PageEmbeddings, shown: Head, store: PageStore, at: Origin) -> Outcome:
    """Remember where something of no effect stands. Raises: HeadConflict, Retryable, Permanent."""
    head = _having_met(shown, at)
    if head != shown:
        await store.write(part.model_copy(update={"chunks": ()}), head)
    return Outcome(again=shown.change if head.needs_requeue else None)


def _same(part: PageEmbeddings, shown: Head) -> bool:
    """Whether it is of another copy of the change that is shown: a CMS, or Kafka, may deliver one twice."""
    change, other = part.change, shown.change
    return (change.revision, change.op, part.digest) == (other.revision, other.op, shown.digest)


def _wins(a: ChangeRef, b: ChangeRef) -> bool:
    """Whether `a` wins over `b`; of the same change sent twice, the later one."""
    return newer(a, b) or (not newer(b, a) and a.partition == b.partition and a.offset > b.offset)


async def _lost(
    part: PageEmbeddings, origin: Origin, winner: Head, store: PageStore, now: Callable[[], datetime]
) -> Outcome:
    """A newer change was there first: this one's chunks go, and where it stands behind the winner in a topic, the
    winner is sent again.
    """
    change = part.change
    # Elasticsearch refused our chunks where the winner has one of the same id; the others are removed here.
    if left := _addresses(part.counts, but=winner.counts):
        await store.remove(change, left)
        await store.refresh()  # the winner's refresh may have made them visible
    head = _having_met(winner, origin)
    if (head.needs_requeue or head.ahead) and head != winner:
        await store.write(part.model_copy(update={"chunks": ()}), head)
    receipt = ReceiptEvent(change=change, state="superseded", at=now())
    return Outcome(receipt, again=winner.change if head.needs_requeue else None)


def _having_met(winner: Head, loser: Origin) -> Head:
    """The head, which remembers where the loser stands."""
    return winner.model_copy(update={"losers": winner.losers.latest(loser.in_partitions_of(winner.origin))})


async def _misfit(part: PageEmbeddings, before: Head | None, store: PageStore, now: Callable[[], datetime]) -> Outcome:
    """Cut or embedded for another index, which was live a moment ago: made again for this one."""
    change = part.change
    if before is None or before.ahead or before.change.revision != change.revision:
        return Outcome(again=change)
    if (before.model, before.chunker) != (store.model, store.chunker):
        return Outcome(again=change)
    await store.refresh()
    return _told(part, before, now)


def _told(part: PageEmbeddings, shown: Head, now: Callable[[], datetime]) -> Outcome:
    """The change is shown already: by a rebuild (for a save in the moment of the promotion nobody has said so yet), or
    by us, who died between the head and the receipt.
    """
    receipt = ReceiptEvent(change=part.change, state="searchable", at=now(), chunks=shown.cost, notes=part.notes)
    return Outcome(receipt, again=part.change if shown.origin.embeddings == 0 or shown.needs_requeue else None)


def _head(
    part: PageEmbeddings,
    store: PageStore,
    at: Origin,
    places: Mapping[int, Place],
    before: Head | None,
    removed: int,
    now: Callable[[], datetime],
) -> Head:
    """The head of a change whose parts stand at these `places` in ingest.embeddings."""
    # Each part has a key of its own in the topic, so each must stand behind the losers: what counts is the first one.
    # A copy that stands in another partition is taken for one that stands nowhere: the next copies are all in this one.
    offsets = [place.offset if place.partition in (None, at.embeddings_in) else 0 for place in places.values()]
    origin = at.model_copy(update={"embeddings": min(offsets)})
    end = at.model_copy(update={"embeddings": max(offsets)})
    change, limit = part.change, before.narrowed if before else None
    cost = ChunkCounts(total=sum(part.counts.values()), embedded=part.embedded, reused=part.reused, removed=removed)
    settled_at = now()
    told = before is not None and before.ahead and (before.state == "live" or change.op == "delete")
    if before is not None and told and before.change == change:
        cost, settled_at = before.cost, before.settled_at
    losers = Origin()
    if before is not None and newer(part.change, before.change):
        losers = before.behind(origin)
    elif before is not None:
        # At a replay the page's last products may stand further back than those at hand.
        origin = origin.latest(before.origin.in_partitions_of(origin))
        end = end.latest(before.end.in_partitions_of(origin))
        # Of losers that an earlier version met nobody knows the partition. For them one copy has been sent: this one.
        losers = before.losers.in_partitions_of(origin, for_sure=True)
    return Head(
        change=part.change,
        state="deleted" if part.change.op == "delete" else "live",
        counts=part.counts,
        # Ahead: as many as stand in ingest.embeddings until the change comes there; the embed stage overwrites them.
        parts=before.parts if part.ahead and before else part.parts,
        model=store.model if part.ahead else part.model,
        chunker=store.chunker if part.ahead else part.chunker,
        cost=cost,
        origin=origin,
        last_part=end.embeddings,
        losers=losers,
        settled_at=settled_at,
        digest=part.digest,
        ahead=part.ahead,
        narrowed=limit if limit and limit.revision > change.revision else None,
        token=before.token if before else None,
    )


def _here(origin: Origin) -> Place:
    return Place(origin.embeddings, origin.embeddings_in)


def _addresses(counts: Mapping[FieldName, int], but: Mapping[FieldName, int] | None = None) -> list[ChunkAddress]:
    """Chunk addresses in `counts`, without those in `but`."""
    kept = but or {}
    return [(field, ord) for field in FIELDS for ord in range(kept.get(field, 0), counts.get(field, 0))]
