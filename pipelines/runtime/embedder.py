"""The embedder as the stages need it: ingest makes vectors of chunks by it, query compares questions with them."""

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
        """Its name in the settings: `lite`, `bge-m3`, `openai:MODEL`."""
        ...

    @property
    def fingerprint(self) -> str:
        """Model, version and use: vectors of equal fingerprints can be compared."""
        ...

    @property
    def dims(self) -> int:
        """Length of its vectors; known once it was started."""
        ...

    async def passages(self, texts: Sequence[str], *, urgent: bool = True) -> Matrix32:
        """Embed texts of pages: shape (len(texts), dims).

        Args:
            urgent: Overtakes calls that are not; one that is at work is waited for, a chunk or two.

        Raises:
            Retryable: its service is away or busy.
            Permanent: it refuses, or answers with something that is no set of vectors.
        """
        ...

    async def query(self, text: str) -> Matrix32:
        """Embed a question: shape (dims,). Overtakes `passages` that wait. Raises as `passages` does."""
        ...


class SiteEmbedders(Protocol):
    """Which embedder a site's live index was built with (adapters.embedders.registry)."""

    async def for_site(self, site: str) -> Embedder:
        """At most two seconds behind a promotion."""
        ...

    async def for_new(self, site: str) -> Embedder:
        """By a look at the index that begins now: for what will be written to it."""
        ...
