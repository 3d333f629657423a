"""The head record: what the index holds of a page, and the durable guard of its order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import AwareDatetime, Field

from schemas.base import Revision, Wire
from schemas.ingest import ChunkCounts, Reading
from schemas.page import ChangeRef, FieldName

Token = tuple[int, int]  # sequence number and primary term


TOPICS = ("changes", "chunks", "embeddings")
Partition = Field(default=None, exclude_if=lambda number: number is None, description="... and the partition.")


class Origin(Wire):
    """Where a change and its products stand in their topics; 0: nowhere that is known."""

    changes: int = Field(default=0, ge=0, description="Offset in cms.changes.")
    chunks: int = Field(default=0, ge=0, description="Offset in ingest.chunks.")
    embeddings: int = Field(default=0, ge=0, description="Offset in ingest.embeddings.")
    # A topic that gets partitions puts a page's later records elsewhere.
    changes_in: int | None = Partition
    chunks_in: int | None = Partition
    embeddings_in: int | None = Partition

    def furthest(self, other: Origin) -> Origin:
        """Of each topic the later position; only of what stands in the same partitions (see `beside`)."""
        later = (self if getattr(self, topic) >= getattr(other, topic) else other for topic in TOPICS)
        return Origin(
            **{name: value for topic, one in zip(TOPICS, later, strict=True) for name, value in one._in(topic)}
        )

    def beside(self, other: Origin, *, for_sure: bool = False) -> Origin:
        """What stands in the same partitions as the other: where it stands in another one, its offset says nothing.

        Before partitions were written down, and where the other's products are still to come: products are in the
        same ones when the changes are. With `for_sure` what of this was written without a partition is left out.
        """
        kept: dict[str, int | None] = {}
        same = self.changes_in == other.changes_in or None in (self.changes_in, other.changes_in)
        for topic in TOPICS:
            mine, theirs = getattr(self, f"{topic}_in"), getattr(other, f"{topic}_in")
            unknown = None in (mine, theirs)
            if (same and not (for_sure and mine is None)) if unknown else mine == theirs:
                kept |= self._in(topic)
        return Origin.model_validate(kept)

    def _in(self, topic: str) -> Iterator[tuple[str, int | None]]:
        return ((name, getattr(self, name)) for name in (topic, f"{topic}_in"))

    def covers(self, other: Origin) -> bool:
        """Whether nothing of the other's stands behind this in any topic."""
        return self.furthest(other) == self


class Narrowed(Wire):
    """Groups that a change allows which is accepted, but not embedded yet: until then no older one may show more."""

    revision: Revision
    groups: tuple[str, ...]


class Head(Wire):
    """One per page and index, for deleted pages too: an older publish never gets past it."""

    change: ChangeRef = Field(description="The change the index shows.")
    state: Literal["live", "deleted"]
    counts: dict[FieldName, int] = Field(default_factory=dict, description="Chunks per field.")
    parts: int = Field(default=1, ge=1, description="Parts in ingest.embeddings.")
    model: str = ""
    chunker: str = ""
    cost: ChunkCounts = ChunkCounts()
    # Compaction keeps the last record of a key: no product of an older change may outlive those of this one.
    origin: Origin = Field(default=Origin(), description="Where this change and its products stand; the first part.")
    last_part: int = Field(
        default=0,
        ge=0,
        description="Offset of the last of its parts in ingest.embeddings, or of what could harm a newer change only.",
    )
    losers: Origin = Field(
        default=Origin(), description="Where older changes and earlier copies were met that stand furthest back."
    )
    settled_at: AwareDatetime = Field(description="When the index showed it.")
    digest: str = Field(default="", exclude_if=lambda digest: not digest, description="As in ingest.embeddings.")
    reading: Reading | None = Field(default=None, exclude_if=lambda reading: reading is None)
    ahead: bool = Field(
        default=False,
        exclude_if=lambda ahead: not ahead,
        description="Applied before its products came to ingest.embeddings; `deleted` with an upsert: not shown yet.",
    )
    narrowed: Narrowed | None = Field(default=None, exclude_if=lambda narrowed: narrowed is None)
    token: Token | None = Field(default=None, exclude=True, description="Which write of the record this was read from.")

    @property
    def end(self) -> Origin:
        """Where the last of this change and its products stand."""
        return self.origin.model_copy(update={"embeddings": self.last_part, "changes_in": self.change.partition})

    def behind(self, newer: Origin, *, for_sure: bool = False) -> Origin:
        """Of this change and those it won over, what might stand behind a newer one, in the same partitions."""
        return self.losers.furthest(self.end).beside(newer, for_sure=for_sure)

    @property
    def unseen(self) -> bool:
        """Whether it is of a page that is not shown before this change is embedded: only who may see it is known."""
        return self.ahead and self.change.op == "upsert" and self.state == "deleted"

    @property
    def unplaced(self) -> bool:
        """Whether a rebuild has put it in before its products came, so nobody knows what stands behind them."""
        return not (self.ahead or self.origin.embeddings or self.last_part)

    @property
    def outlived(self) -> bool:
        """Whether an older change would outlive this one in a topic, so that this one must be sent again.

        Where the products stand of a change that was applied ahead is known when they come.
        """
        return not self.ahead and not self.origin.covers(self.losers)
