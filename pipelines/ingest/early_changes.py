"""Ahead: deletes, and groups that may not see a page any more, do not wait for an embedder.

    chunk ─▶ ingest.chunks ─▶ embed ─▶ ingest.embeddings ─▶ index        the way of every page
      └───────── ahead ──────────────▶ ingest.embeddings ─▶ index

The page comes the usual way as well, hours later if its model is away, and then the index ends the same with or
without this. Until then:

- A deleted page is gone, and its receipt says so.
- Where the index shows the same text, title and address, it shows them as the new revision, to the new groups.
- Else the groups that may not see the new revision lose sight of the old one; and of every older one that is still on
  its way, since the head remembers (`narrowed`). A page that was never shown is shown as of this change only.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from pipelines.ingest.accept import newer
from pipelines.ingest.ports import PageStore
from schemas.head import Head, LogPositions, PendingGroups
from schemas.ingest import ChunkCounts, PageChunks, PageEmbeddings, ReceiptEvent


def early_part(page: PageChunks) -> PageEmbeddings | None:
    """The part to send ahead of a page; None for a page that everybody may see, since it hides nothing from a group."""
    meta = page.meta
    if meta is not None and meta.groups is None:
        return None
    return PageEmbeddings(
        change=page.change,
        meta=meta,
        chunker=page.chunker.fingerprint,
        embedder="",
        model="",
        dims=1,
        part=0,
        parts=1,
        ahead=True,
        digest=page.digest,
        notes=page.notes,
        reading=page.reading,
    )


async def regroup(
    part: PageEmbeddings, before: Head | None, store: PageStore, now: Callable[[], datetime], origin: LogPositions
) -> ReceiptEvent | None:
    """Hide the page from groups that a pending change no longer allows.

    Args:
        before: The page's head, of an older change.

    Returns:
        The receipt event; None where nothing changes.

    Raises:
        HeadConflict: another writer changed it. Retryable, Permanent: from the store.
    """
    change, groups = part.change, part.meta.groups if part.meta else None
    assert groups is not None
    if before is None:
        unseen = Head(
            change=change,
            state="deleted",
            model=store.model,
            chunker=store.chunker,
            origin=origin,
            settled_at=now(),
            ahead=True,
        )
        await store.write(part, unseen)
        return None
    known = before.narrowed
    if known is not None and known.revision > change.revision:
        return None
    if _groups_alone(part, before, store) and await store.regroup(before, change, groups):
        total = sum(before.counts.values())
        head = before.model_copy(
            update={
                "change": change,
                "cost": ChunkCounts(total=total, reused=total),
                "origin": origin,
                "last_part": 0,
                "losers": before.behind(origin),
                "settled_at": now(),
                "digest": part.digest,
                "reading": part.reading,
                "ahead": True,
                "narrowed": None,
            }
        )
        await store.write(part, head)
        await store.refresh()
        return ReceiptEvent(change=change, state="searchable", at=head.settled_at, chunks=head.cost, notes=part.notes)
    pending = PendingGroups(revision=change.revision, groups=groups)
    if known != pending:
        # First the head: a writer of an older revision does not get past it, and reads the groups from it.
        await store.write(part, before.model_copy(update={"narrowed": pending}))
    seen_by = before.digest.partition(".")[2]
    if before.state == "live" and (known or seen_by != part.digest.partition(".")[2]):
        await store.regroup(before, None, groups)
        await store.refresh()
    return None


def with_pending_groups(part: PageEmbeddings, before: Head | None) -> PageEmbeddings:
    """The part, hidden from groups that a newer, pending change does not allow."""
    limit, meta = before.narrowed if before else None, part.meta
    if limit is None or meta is None or limit.revision <= part.change.revision:
        return part
    both = limit.groups if meta.groups is None else tuple(group for group in meta.groups if group in limit.groups)
    return part.model_copy(update={"meta": meta.model_copy(update={"groups": both})})


def _groups_alone(part: PageEmbeddings, shown: Head, store: PageStore) -> bool:
    """Whether the page differs from what is shown by its groups and by nothing else."""
    if shown.state != "live" or (shown.model, shown.chunker) != (store.model, store.chunker):
        return False
    seen, _, allowed = part.digest.partition(".")
    seen_before, _, allowed_before = shown.digest.partition(".")
    return seen == seen_before and allowed != allowed_before and newer(part.change, shown.change)
