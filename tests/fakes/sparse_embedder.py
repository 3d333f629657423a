"""An embedder with sparse vectors for tests, without a model: each word is a token."""

from __future__ import annotations

import re
from collections.abc import Sequence
from zlib import crc32

from adapters.embedders.base import Vectors
from pipelines.runtime.embedder import SPARSE
from schemas.ingest import SparseVector
from tests.fakes.embedder import FakeEmbedder


def token(word: str) -> str:
    return str(crc32(word.encode()) % 250_000)


class FakeSparseEmbedder(FakeEmbedder):
    """Implements `SparseEmbedder`, too: a word weighs a tenth for each of its letters."""

    def __init__(self, dims: int = 64) -> None:
        super().__init__(dims)
        self.fingerprint += SPARSE

    async def passages_and_weights(
        self, texts: Sequence[str], *, urgent: bool = True
    ) -> tuple[Vectors, list[SparseVector]]:
        return await self.passages(texts, urgent=urgent), [*map(self._weights, texts)]

    async def query_and_weights(self, text: str) -> tuple[Vectors, SparseVector]:
        return await self.query(text), self._weights(text)

    def _weights(self, text: str) -> SparseVector:
        return {token(word): len(word) / 10 for word in re.findall(r"\w+", text.lower())}
