"""The head record: what the index holds of a page, and the durable guard of its order."""

from __future__ import annotations

from typing import Literal

from pydantic import AwareDatetime, Field

from schemas.base import Revision, Wire
from schemas.ingest import ChunkCounts
from schemas.page import ChangeRef, FieldName

Token = tuple[int, int]  # sequence number and primary term


class Origin(Wire):
    """Where a change and its products stand in their topics; 0: nowhere that is known."""

    changes: int = Field(default=0, ge=0, description="Offset in cms.changes.")
    chunks: int = Field(default=0, ge=0, description="Offset in ingest.chunks.")
    embeddings: int = Field(default=0, ge=0, description="Offset in ingest.embeddings.")

    def furthest(self, other: Origin) -> Origin:
        """Of each topic the later position."""
        return Origin(
            changes=max(self.changes, other.changes),
            chunks=max(self.chunks, other.chunks),
            embeddings=max(self.embeddings, other.embeddings),
        )

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
    last_part: int = Field(default=0, ge=0, description="Offset of its last part in ingest.embeddings.")
    losers: Origin = Field(default=Origin(), description="Where older changes were met that stand furthest back.")
    settled_at: AwareDatetime = Field(description="When the index showed it.")
    digest: str = Field(default="", exclude_if=lambda digest: not digest, description="As in ingest.embeddings.")
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
        return self.origin.model_copy(update={"embeddings": self.last_part})

    @property
    def unseen(self) -> bool:
        """Whether it is of a page that is not shown before this change is embedded: only who may see it is known."""
        return self.ahead and self.change.op == "upsert" and self.state == "deleted"

    @property
    def outlived(self) -> bool:
        """Whether an older change would outlive this one in a topic, so that this one must be sent again.

        Where the products stand of a change that was applied ahead is known when they come.
        """
        return not self.ahead and not self.origin.covers(self.losers)
