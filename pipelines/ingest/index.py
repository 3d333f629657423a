"""Index: a page's embedded chunks take the place of its previous revision.

    ingest.embeddings ─▶ index ─▶ Elasticsearch: chunks, then head, then old chunks go; refresh ─▶ ingest.receipts

Written to be repeated: ids are deterministic, every write carries the revision as its version, and the page's head
record decides. Dying between any two steps leaves the message unacknowledged, and doing it again ends the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from pipelines.ingest.accept import newer
from pipelines.runtime.errors import Permanent
from schemas.head import Head
from schemas.ingest import ChunkCounts, PageEmbeddings, ReceiptEvent
from schemas.page import FIELDS, ChangeRef, FieldName

ChunkAddress = tuple[FieldName, int]


class ModelMismatch(Permanent):
    """The live index holds vectors of another model."""

    code = "model-mismatch"


class PageStore(Protocol):
    """The index of a site, as the index stage needs it."""

    async def ensure(self, site: str, *, embedder: str, model: str, dims: int, chunker: str) -> str:
        """Create the site's index when there is none; returns the live index's model."""
        ...

    async def heads(self, site: str, page_keys: Iterable[str]) -> Mapping[str, Head]: ...

    async def write(self, part: PageEmbeddings, head: Head | None) -> bool:
        """Write the part's chunks, then the head if given; False when a newer revision is there."""
        ...

    async def remove(self, change: ChangeRef, chunks: Sequence[ChunkAddress]) -> None:
        """Delete chunks unless a newer revision wrote them."""
        ...

    async def strays(self, change: ChangeRef) -> Sequence[ChunkAddress]:
        """Chunks of the page, not newer than this change, that can be found."""
        ...

    async def refresh(self, site: str) -> None:
        """Return when everything written so far can be found."""
        ...


@dataclass(frozen=True)
class Outcome:
    """What to tell the editor (nothing before the last part), and what to put back on top of the log."""

    receipt: ReceiptEvent | None = None
    restore: ChangeRef | None = None


async def index_part(part: PageEmbeddings, store: PageStore, now: Callable[[], datetime]) -> Outcome:
    """Apply one part of a change.

    Raises:
        ModelMismatch: the vectors do not belong into the live index.
        Retryable, Permanent: from the store.
    """
    if part.superseded:
        return Outcome()
    change = part.change
    site, key = change.site, change.page_key
    model = await store.ensure(site, embedder=part.embedder, model=part.model, dims=part.dims, chunker=part.chunker)
    if change.op == "upsert" and model != part.model:
        raise ModelMismatch(
            f"{key}: embedded with {part.model}, but the index of site {site} holds {model}; "
            f"redrive it, so that it is embedded again"
        )
    before = (await store.heads(site, [key])).get(key)
    if before is not None and newer(before.change, change):
        return _superseded(change, before, now)

    last = part.part == part.parts - 1
    gone = _addresses(before.counts, but=part.counts) if before and last else []
    head = _head(part, len(gone), now) if last else None
    if not await store.write(part, head):
        # A newer revision came in between. What we wrote over it was refused; what we wrote beside it goes.
        await store.remove(change, _addresses(part.counts))
        return Outcome(ReceiptEvent(change=change, state="superseded", at=now()))
    if head is None:
        return Outcome()
    await store.remove(change, gone)
    await store.refresh(site)
    if change.op == "delete" and (strays := await store.strays(change)):
        await store.remove(change, strays)
        await store.refresh(site)
    return Outcome(
        ReceiptEvent(
            change=change,
            state="deleted" if change.op == "delete" else "searchable",
            at=now(),
            chunks=head.cost,
            notes=part.notes,
        )
    )


def _superseded(change: ChangeRef, winner: Head, now: Callable[[], datetime]) -> Outcome:
    """An old change; if it stands behind the winner in the log, compaction would keep the wrong one."""
    shown = winner.change
    covers = shown.partition == change.partition and change.offset > shown.offset
    receipt = ReceiptEvent(change=change, state="superseded", at=now())
    return Outcome(receipt, restore=shown if covers else None)


def _head(part: PageEmbeddings, removed: int, now: Callable[[], datetime]) -> Head:
    return Head(
        change=part.change,
        state="deleted" if part.change.op == "delete" else "live",
        counts=part.counts,
        parts=part.parts,
        model=part.model,
        chunker=part.chunker,
        cost=ChunkCounts(total=sum(part.counts.values()), embedded=part.embedded, reused=part.reused, removed=removed),
        settled_at=now(),
    )


def _addresses(counts: Mapping[FieldName, int], but: Mapping[FieldName, int] | None = None) -> list[ChunkAddress]:
    """Chunk addresses in `counts`, without those in `but`."""
    kept = but or {}
    return [(field, ord) for field in FIELDS for ord in range(kept.get(field, 0), counts.get(field, 0))]
