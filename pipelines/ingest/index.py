"""Index: a page's embedded chunks take the place of its previous revision.

    ingest.embeddings ─▶ index ─▶ Elasticsearch: chunks, old chunks go, then the head; refresh ─▶ ingest.receipts

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
from pipelines.ingest.ports import ChunkAddress, HeadConflict, IndexReplaced, PageStore, Sites, Store
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
    first_part: int | None = None,
) -> Outcome:
    """Apply one part of a change to the live index.

    Args:
        embeddings_offset: Where the part stands in ingest.embeddings.
        first_part: Where the change's first part stands there; 0: not known, None: this is the only one.

    Raises:
        IndexReplaced: another index was promoted meanwhile.
        Retryable, Permanent: from the store.
    """
    store = await sites.live(
        part.change.site, embedder=part.embedder, model=part.model, dims=part.dims, chunker=part.chunker
    )
    origin = Origin(changes=part.change.offset, chunks=part.chunks_offset, embeddings=embeddings_offset)
    outcome = await (
        _overwritten(part, store, origin) if part.superseded else apply_part(part, store, now, origin, first_part)
    )
    # A rebuild that is promoted covers what was in the topics before the swap. So whoever wrote to the old index may
    # only say so if it was still the live one afterwards.
    if not await sites.still_live(store):
        raise IndexReplaced(
            f"{part.change.page_key}: another index of site {part.change.site} is being promoted", outcome.again
        )
    return outcome


async def apply_part(
    part: PageEmbeddings,
    store: PageStore,
    now: Callable[[], datetime],
    origin: Origin,
    first_part: int | None = None,
) -> Outcome:
    """Apply one part of a change, which stands at `origin`, to an index; `first_part` as for `index_part`.

    Raises:
        Retryable, Permanent: from the store.
    """
    while True:
        before = (await store.heads([part.change.page_key])).get(part.change.page_key)
        with suppress(HeadConflict):
            if outcome := await _apply(part, before, store, now, origin, first_part):
                return outcome


async def _apply(
    part: PageEmbeddings,
    before: Head | None,
    store: PageStore,
    now: Callable[[], datetime],
    origin: Origin,
    first_part: int | None,
) -> Outcome | None:
    """One try; None when another writer has changed the head since it was read, so that the caller reads it again.

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
    if before is not None and _wins(before.change, change):
        # An earlier try may have written chunks of ours before it died; the winner replaced only those it has, too.
        return await _lost(part, origin, before, store, now)
    last = part.part == part.parts - 1
    if change.op == "upsert" and (part.model, part.chunker) != (store.model, store.chunker):
        return await _misfit(part, before, store, now) if last else Outcome()
    if not last:
        await store.write(part, None)
        after = (await store.heads([change.page_key])).get(change.page_key)
        return Outcome() if after == before else None

    gone = _addresses(before.counts, but=part.counts) if before else []
    head = _head(part, origin, first_part, before, len(gone), now)
    if gone:
        # Before the head: once it stands, nothing is left to be done again.
        await store.write(part, None)
        await store.remove(change, gone)
    if not await store.write(part.model_copy(update={"chunks": ()}) if gone else part, head):
        # A newer change has written chunks, but not its head yet: until it does, ours stands in the index.
        return Outcome(ReceiptEvent(change=change, state="superseded", at=now()))
    await store.refresh()
    if change.op == "delete" and (strays := await store.strays(change)):
        await store.remove(change, strays)
        await store.refresh()
    receipt = ReceiptEvent(
        change=change,
        state="deleted" if change.op == "delete" else "searchable",
        at=now(),
        chunks=head.cost,
        notes=part.notes,
    )
    return Outcome(receipt, again=change if head.outlived else None)


async def _overwritten(part: PageEmbeddings, store: PageStore, origin: Origin) -> Outcome:
    """Take note of a tombstone: an empty part that overwrites, in the topic, one that the page's revision lacks.

    Where the change that the index shows does have a part of this number, the tombstone may stand behind it in the
    topic and outlive it there: then that change is sent again, as for a loser.
    """
    key = part.change.page_key
    while shown := (await store.heads([key])).get(key):
        if part.part >= shown.parts or newer(part.change, shown.change):
            break
        head = _having_met(shown, part.change, Origin(embeddings=origin.embeddings))
        with suppress(HeadConflict):
            if head != shown:
                await store.write(part, head)
            return Outcome(again=shown.change if head.outlived else None)
    return Outcome()


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
    head = _having_met(winner, change, origin)
    if head.outlived and head != winner:
        await store.write(part.model_copy(update={"chunks": ()}), head)
    receipt = ReceiptEvent(change=change, state="superseded", at=now())
    return Outcome(receipt, again=winner.change if head.outlived else None)


def _having_met(winner: Head, loser: ChangeRef, origin: Origin) -> Head:
    """The head, which remembers where the loser stands; positions in another partition say nothing."""
    if loser.partition != winner.change.partition:
        return winner
    return winner.model_copy(update={"losers": winner.losers.furthest(origin)})


async def _misfit(part: PageEmbeddings, before: Head | None, store: PageStore, now: Callable[[], datetime]) -> Outcome:
    """Cut or embedded for another index, which was live a moment ago: made again for this one."""
    change = part.change
    if before is None or before.change.revision != change.revision:
        return Outcome(again=change)
    if (before.model, before.chunker) != (store.model, store.chunker):
        return Outcome(again=change)
    # A rebuild has put it here already; for a save in the moment of the promotion nobody has said so yet.
    await store.refresh()
    receipt = ReceiptEvent(change=change, state="searchable", at=now(), chunks=before.cost, notes=part.notes)
    return Outcome(receipt, again=change if before.origin.embeddings == 0 else None)


def _head(
    part: PageEmbeddings,
    end: Origin,
    first_part: int | None,
    before: Head | None,
    removed: int,
    now: Callable[[], datetime],
) -> Head:
    # Each part has a key of its own in the topic, so each must stand behind the losers: what counts is the first one.
    origin = end if first_part is None else end.model_copy(update={"embeddings": first_part})
    losers = Origin()
    if before is not None and before.change.partition == part.change.partition:
        losers = before.losers
        if newer(part.change, before.change):
            losers = losers.furthest(before.end)
        else:  # at a replay the page's last products may stand further back than those at hand
            origin, end = origin.furthest(before.origin), end.furthest(before.end)
    return Head(
        change=part.change,
        state="deleted" if part.change.op == "delete" else "live",
        counts=part.counts,
        parts=part.parts,
        model=part.model,
        chunker=part.chunker,
        cost=ChunkCounts(total=sum(part.counts.values()), embedded=part.embedded, reused=part.reused, removed=removed),
        origin=origin,
        last_part=end.embeddings,
        losers=losers,
        settled_at=now(),
        token=before.token if before else None,
    )


def _addresses(counts: Mapping[FieldName, int], but: Mapping[FieldName, int] | None = None) -> list[ChunkAddress]:
    """Chunk addresses in `counts`, without those in `but`."""
    kept = but or {}
    return [(field, ord) for field in FIELDS for ord in range(kept.get(field, 0), counts.get(field, 0))]
