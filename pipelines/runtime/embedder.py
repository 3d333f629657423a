"""The embedder as the stages use it: ingest embeds chunks, query embeds questions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Matrix32 = NDArray[np.float32]


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


class Embedders(Protocol):
    """The embedders of sites' live indexes, and any other by its name (adapters.embedders.registry.Models)."""

    async def for_site(self, site: str) -> Embedder:
        """The embedder of the live index; at most two seconds behind a promotion."""
        ...

    async def for_new(self, site: str) -> Embedder:
        """The embedder for writes to the index: reads the index now, without a cache."""
        ...

    async def by_name(self, spec: str) -> Embedder:
        """The embedder that `spec` names, started. Raises: SettingsError, Permanent."""
        ...
