"""An embedder for tests, without a model: texts that share words have similar vectors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from zlib import crc32

import numpy as np

from adapters.embedders.base import Vectors, readable
from pipelines.query.search.ports import EmbedderProfile

_WORD = re.compile(r"\w+")


class FakeEmbedder:
    """A bag of hashed words. Implements `Embedder`; records the embedded texts and questions."""

    spec = "fake"
    device = "cpu"
    profile = EmbedderProfile(short_floor=0.3, content_floor=0.1)

    def __init__(self, dims: int = 64, version: str = "1") -> None:
        self.dims = dims
        self.fingerprint = f"fake-{version}-{dims}"
        self.embedded: list[str] = []
        self.asked: list[str] = []

    async def start(self) -> None:
        """There is nothing to load."""

    async def recheck(self) -> None:
        pass

    async def aclose(self) -> None:
        """There is nothing to free."""

    async def passages(self, texts: Sequence[str], *, urgent: bool = True) -> Vectors:
        self.embedded += texts
        return np.stack([self._vector(text) for text in texts]) if texts else np.empty((0, self.dims), np.float32)

    async def query(self, text: str) -> Vectors:
        self.asked.append(text)
        return self._vector(text)

    def _vector(self, text: str) -> Vectors:
        vector: Vectors = np.zeros(self.dims, np.float32)
        for word in _WORD.findall(readable(text).lower()) or [""]:
            bits = crc32(word.encode())
            vector[bits % self.dims] += 1.0
            vector[(bits >> 16) % self.dims] += 0.5
        unit: Vectors = vector / np.linalg.norm(vector)
        return unit
