"""The head record: the state of a page in an index, and the durable guard of its order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import AwareDatetime, Field

from schemas.base import Revision, Wire, optional
from schemas.ingest import ChunkCounts, Reading
from schemas.labels import Labels
from schemas.page import ChangeRef, FieldName

Token = tuple[int, int]  # sequence number and primary term


TOPICS = ("changes", "chunks", "embeddings")
Partition = optional(description="... and the partition.")


class LogPositions(Wire):
    """The offsets of a change and its products in their topics; 0: unknown."""

    changes: int = Field(default=0, ge=0, description="Offset in cms.changes.")
    chunks: int = Field(default=0, ge=0, description="Offset in ingest.chunks.")
    embeddings: int = Field(default=0, ge=0, description="Offset in ingest.embeddings.")
    # When partitions are added to a topic, a page's later records may go to another one.
    changes_in: int | None = Partition
    chunks_in: int | None = Partition
    embeddings_in: int | None = Partition

    def latest(self, other: LogPositions) -> LogPositions:
        """The later position of each topic; only for positions in the same partitions (see `in_partitions_of`)."""
        later = (self if getattr(self, topic) >= getattr(other, topic) else other for topic in TOPICS)
        return LogPositions(
            **{name: value for topic, one in zip(TOPICS, later, strict=True) for name, value in one._in(topic)}
        )

    def in_partitions_of(self, other: LogPositions, *, for_sure: bool = False) -> LogPositions:
        """The positions in the same partitions as the other's: offsets of different partitions cannot be compared.

        If a partition is unknown (an older note, or the other's products are still to come), products are assumed in
        the same partition if the changes are. With `for_sure`, own positions without a partition are left out.
        """
        kept: dict[str, int | None] = {}
        same = self.changes_in == other.changes_in or None in (self.changes_in, other.changes_in)
        for topic in TOPICS:
            mine, theirs = getattr(self, f"{topic}_in"), getattr(other, f"{topic}_in")
            unknown = None in (mine, theirs)
            if (same and not (for_sure and mine is None)) if unknown else mine == theirs:
                kept |= self._in(topic)
        return LogPositions.model_validate(kept)

    def _in(self, topic: str) -> Iterator[tuple[str, int | None]]:
        return ((name, getattr(self, name)) for name in (topic, f"{topic}_in"))

    def covers(self, other: LogPositions) -> bool:
        """Whether no position of the other is behind this one's in any topic."""
        return self.latest(other) == self


class PendingGroups(Wire):
    """The groups of an accepted change that is not embedded yet: until then an older change must not show to more."""

    revision: Revision
    groups: tuple[str, ...]


class Head(Wire):
    """One per page and index, also for deleted pages: it keeps older changes from replacing a newer one."""

    change: ChangeRef = Field(description="The change the index shows.")
    state: Literal["live", "deleted"]
    counts: dict[FieldName, int] = Field(default_factory=dict, description="Chunks per field.")
    parts: int = Field(default=1, ge=1, description="Parts in ingest.embeddings.")
    model: str = ""
    chunker: str = ""
    cost: ChunkCounts = ChunkCounts()
    # Compaction keeps the last record of a key, so no product of an older change may be behind those of this one.
    origin: LogPositions = Field(
        default=LogPositions(), description="Offsets of this change and its products; of its first part."
    )
    last_part: int = Field(
        default=0,
        ge=0,
        description="Offset of its last part in ingest.embeddings, or of what could harm only a newer change.",
    )
    losers: LogPositions = Field(
        default=LogPositions(),
        description="The latest offsets of older changes and earlier copies that lost to this one.",
    )
    settled_at: AwareDatetime = Field(description="When the index showed it.")
    digest: str = optional("", description="As in ingest.embeddings.")
    reading: Reading | None = optional()
    labels: Labels = optional({})
    ahead: bool = optional(
        False,
        description="Applied before its products came to ingest.embeddings; `deleted` with an upsert: not shown yet.",
    )
    narrowed: PendingGroups | None = optional()
    token: Token | None = Field(default=None, exclude=True, description="Which write of the record this was read from.")

    @property
    def end(self) -> LogPositions:
        """The last offsets of this change and its products."""
        return self.origin.model_copy(update={"embeddings": self.last_part, "changes_in": self.change.partition})

    def behind(self, newer: LogPositions, *, for_sure: bool = False) -> LogPositions:
        """The latest positions of this change and its losers, in the same partitions as a newer change."""
        return self.losers.latest(self.end).in_partitions_of(newer, for_sure=for_sure)

    @property
    def unseen(self) -> bool:
        """Whether the page is hidden until this change is embedded; only its access groups are applied."""
        return self.ahead and self.change.op == "upsert" and self.state == "deleted"

    @property
    def unplaced(self) -> bool:
        """Whether a rebuild has written it before its products came, so what is behind them is unknown."""
        return not (self.ahead or self.origin.embeddings or self.last_part)

    @property
    def needs_requeue(self) -> bool:
        """Whether a loser is behind this change in a topic, where compaction would keep it; then send this one again.

        False for a change that was applied ahead, because the offsets of its products are not known yet.
        """
        return not self.ahead and not self.origin.covers(self.losers)
