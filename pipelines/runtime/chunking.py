"""The settings of the chunker, which both the ingest and the query stages use."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pipelines.runtime.settings import SettingsGroup
from schemas.ingest import Chunker


class ChunkerSettings(SettingsGroup):
    """The chunker of new indexes."""

    chunk_mode: Literal["content", "fixed"] = Field(
        default="content",
        description="Where cores end: `content` at the text's own borders, `fixed` every `chunk_size` characters.",
    )
    chunk_size: int = Field(
        default=512, ge=32, le=20_000, description="Longest core in characters; see docs/decisions."
    )
    chunk_overlap: float = Field(default=0.2, ge=0, lt=1, description="Share of each neighbour embedded too.")

    @property
    def chunker(self) -> Chunker:
        return Chunker(mode=self.chunk_mode, size=self.chunk_size, overlap=self.chunk_overlap)
