"""Heads: what the index remembers of a page after a write, and what follows from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from pipelines.ingest.accept import newer
from pipelines.ingest.ports import KnownPages, PageStore, PartPosition
from schemas.head import Head, LogPositions
from schemas.ingest import ChunkCounts, PageEmbeddings
from schemas.page import ChangeRef


def shows(head: Head | None, part: PageEmbeddings) -> bool:
    """Whether the index shows this part's page, perhaps of another copy: a change may be sent, or delivered, twice."""
    if head is None or head.ahead:
        return False
    change, shown = part.change, head.change
    made, found = (part.digest, part.model, part.chunker), (head.digest, head.model, head.chunker)
    return (change.revision, change.op, *made) == (shown.revision, shown.op, *found)


async def superseded(pages: KnownPages, change: ChangeRef) -> bool:
    """Whether the live index has a newer revision of the change's page. Raises: Retryable."""
    head = (await pages.heads(change.site, [change.page_key])).get(change.page_key)
    return head is not None and newer(head.change, change)


def wins(a: ChangeRef, b: ChangeRef) -> bool:
    """Whether `a` wins over `b`; of the same change sent twice, the later one."""
    return newer(a, b) or (not newer(b, a) and a.partition == b.partition and a.offset > b.offset)


def having_met(winner: Head, loser: LogPositions) -> Head:
    """The head, which remembers where the loser stands."""
    return winner.model_copy(update={"losers": winner.losers.latest(loser.in_partitions_of(winner.origin))})


def head_of(
    part: PageEmbeddings,
    store: PageStore,
    at: LogPositions,
    places: Mapping[int, PartPosition],
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
    losers = LogPositions()
    if before is not None and wins(change, before.change):
        # Nothing of an earlier copy may stand behind this one, either. The partition of losers that an earlier version
        # met is unknown. For them one copy has been sent: this one.
        losers = before.behind(origin, for_sure=not newer(change, before.change))
    elif before is not None:
        # At a replay the page's last products may stand further back than those at hand.
        origin = origin.latest(before.origin.in_partitions_of(origin))
        end = end.latest(before.end.in_partitions_of(origin))
        losers = before.losers.in_partitions_of(origin, for_sure=True)
    copies = {place.change for place in places.values()}
    unplaced = before is not None and before.unplaced and before.change == change
    if (unplaced or len(copies) > 1) and end.embeddings:
        # What the index before this one had met, or the rest of the other copies, may stand behind it. A copy that is
        # sent now will stand behind it all.
        losers = losers.latest(LogPositions(embeddings=end.embeddings + 1, embeddings_in=at.embeddings_in))
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
        reading=part.reading,
        labels=part.meta.labels if part.meta else {},
        ahead=part.ahead,
        narrowed=limit if limit and limit.revision > change.revision else None,
        token=before.token if before else None,
    )


def place_of(origin: LogPositions) -> PartPosition:
    return PartPosition(origin.embeddings, origin.embeddings_in, (origin.changes_in or 0, origin.changes))
