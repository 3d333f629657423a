"""A rebuild: one generation of a site's index, from its first document to the day it is deleted."""

from __future__ import annotations

from typing import Literal

from pydantic import AwareDatetime, Field

from schemas.base import SiteId, Wire

RebuildSource = Literal["changes", "chunks", "embeddings"]
# building: not all of its topic is in. verified: the audit found it right. live: visitors search it.
# previous: replaced, kept for a rollback.
RebuildState = Literal["building", "verified", "live", "previous"]


class RebuildFailure(Wire):
    """A page that could not be put into the index."""

    page_key: str
    reason: str


class Rebuild(Wire):
    """What is known of a generation, as kept in Elasticsearch and shown to operators."""

    site: SiteId
    generation: int = Field(ge=1)
    index: str
    source: RebuildSource = Field(description="The topic it is filled from.")
    embedder: str
    model: str
    dims: int
    chunker: str
    state: RebuildState = "building"
    offsets: dict[int, int] = Field(default_factory=dict, description="By partition of that topic: where to go on.")
    pages: int = Field(default=0, description="Pages written, those written again included.")
    chunks: int = 0
    embedded: int = Field(default=0, description="Chunks that cost a model call.")
    remade: int = Field(
        default=0, description="Pages whose record did not fit this index and was made from the change."
    )
    failures: int = 0
    failed: tuple[RebuildFailure, ...] = Field(default=(), description="The first of them.")
    created_at: AwareDatetime
    updated_at: AwareDatetime
    promoted_at: AwareDatetime | None = None
