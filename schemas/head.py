"""The head record: what the index holds of a page, and the durable guard of its order (CONTRACT 6)."""

from __future__ import annotations

from typing import Literal

from pydantic import AwareDatetime, Field

from schemas.base import Wire
from schemas.ingest import ChunkCounts
from schemas.page import ChangeRef, FieldName


class Head(Wire):
    """One per page and index, for deleted pages too: an older publish never gets past it."""

    change: ChangeRef = Field(description="The change the index shows.")
    state: Literal["live", "deleted"]
    counts: dict[FieldName, int] = Field(default_factory=dict, description="Chunks per field.")
    parts: int = Field(default=1, ge=1, description="Parts in ingest.embeddings.")
    model: str = ""
    chunker: str = ""
    cost: ChunkCounts = ChunkCounts()
    # Where the change's products stand in their topics: one of an older change behind them must not outlive them there.
    chunks_offset: int = Field(default=0, ge=0, description="In ingest.chunks.")
    embeddings_offset: int = Field(default=0, ge=0, description="In ingest.embeddings, the last part.")
    settled_at: AwareDatetime = Field(description="When the index showed it.")
