"""The embedder as the stages use it: ingest embeds chunks, query embeds questions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from schemas.ingest import ChunkVectors, SparseVector

Matrix32 = NDArray[np.float32]
SPARSE = "+sparse"  # at the end of a fingerprint: the model has sparse vectors, and so has an index of it


class Embedder(Protocol):
    """Text to vectors of length 1, so that a dot product is a cosine (adapters.embedders)."""

    @property
    def spec(self) -> str:
        """The embedder's name in the settings: `lite`, `bge-m3`, `openai:MODEL`."""
        ...

    @property
    def fingerprint(self) -> str:
        """Model, version and use: vectors of equal fingerprints can be compared."""
        ...

    @property
    def dims(self) -> int:
        """Length of the vectors; known after the start."""
        ...

    async def passages(self, texts: Sequence[str], *, urgent: bool = True) -> Matrix32:
        """Embed texts of pages: shape (len(texts), dims).

        Args:
            urgent: Overtakes waiting calls that are not urgent, but not a running one (a chunk or two).

        Raises:
            Retryable: its service is away or busy.
            Permanent: it refuses, or its answer is no set of vectors.
        """
        ...

    async def query(self, text: str) -> Matrix32:
        """Embed a question: shape (dims,). Overtakes waiting `passages`. Raises as `passages` does."""
        ...


@runtime_checkable
class SparseEmbedder(Protocol):
    """What an embedder with sparse vectors can do besides. Both kinds of vectors come from one pass of the model."""

    async def passages_and_weights(
        self, texts: Sequence[str], *, urgent: bool = True
    ) -> tuple[Matrix32, list[SparseVector]]:
        """As `passages`, and the weights of each text."""
        ...

    async def query_and_weights(self, text: str) -> tuple[Matrix32, SparseVector]:
        """As `query`, and the weights."""
        ...


def is_sparse(fingerprint: str) -> bool:
    """Whether vectors of this fingerprint have sparse ones beside them."""
    return fingerprint.endswith(SPARSE)


async def embedded_passages(
    model: Embedder, texts: Sequence[str], *, urgent: bool
) -> tuple[Matrix32, list[SparseVector]]:
    """All that the model makes of texts of pages. Raises as `Embedder.passages`."""
    if isinstance(model, SparseEmbedder):
        return await model.passages_and_weights(texts, urgent=urgent)
    return await model.passages(texts, urgent=urgent), [{} for _ in texts]


async def embedded_query(model: Embedder, text: str) -> ChunkVectors:
    """All that the model makes of a question. Raises as `Embedder.passages`."""
    if isinstance(model, SparseEmbedder):
        return ChunkVectors(*await model.query_and_weights(text))
    return ChunkVectors(await model.query(text), {})


class Embedders(Protocol):
    """The embedders of sites' live indexes, and any other by its name (adapters.embedders.registry.Models)."""

    async def for_site(self, site: str) -> Embedder:
        """The embedder of the live index, perhaps of the one before a promotion: a search notices by its hits."""
        ...

    async def for_new(self, site: str) -> Embedder:
        """The embedder for writes to the index: reads the index now, without a cache."""
        ...

    async def by_name(self, spec: str) -> Embedder:
        """The embedder that `spec` names, started. Raises: SettingsError, Permanent."""
        ...
