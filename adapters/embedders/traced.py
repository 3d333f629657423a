"""Wraps an embedder of this process to make spans of its calls. Used only where tracing is switched on."""

from __future__ import annotations

from collections.abc import Sequence

from adapters.embedders.base import Embedder, Vectors
from pipelines.query.search.ports import EmbedderProfile
from pipelines.runtime import tracing


class TracedEmbedder:
    """The given embedder, with spans. Implements `Embedder`."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @property
    def spec(self) -> str:
        return self._embedder.spec

    @property
    def fingerprint(self) -> str:
        return self._embedder.fingerprint

    @property
    def dims(self) -> int:
        return self._embedder.dims

    @property
    def profile(self) -> EmbedderProfile:
        return self._embedder.profile

    async def start(self) -> None:
        await self._embedder.start()

    async def recheck(self) -> None:
        await self._embedder.recheck()

    async def aclose(self) -> None:
        await self._embedder.aclose()

    async def passages(self, texts: Sequence[str], *, urgent: bool = True) -> Vectors:
        with tracing.inference("embeddings", self.spec, ""):
            return await self._embedder.passages(texts, urgent=urgent)

    async def query(self, text: str) -> Vectors:
        with tracing.inference("embeddings", self.spec, ""):
            return await self._embedder.query(text)
