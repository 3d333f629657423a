"""Embedders whose model computes in this process: a window of tokens a call, on threads that a question overtakes.

texts ─▶ read ─▶ windows ─▶ the model ─▶ their vectors ─▶ one of each text
"""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Protocol

import numpy as np
from more_itertools import split_into
from numpy.typing import NDArray

from adapters.embedders.base import Vectors, readable, unit_vectors
from adapters.embedders.model_threads import BULK, QUESTION, SAVE, ModelThreads, at_once

LONGEST = 100_000  # characters of a text that are read; what follows would hardly change its vector


class Model(Protocol):
    """What is called from several threads at once."""

    def read(self, text: str) -> list[Any]:
        """Its tokens: windows, each with a length, as many as it takes."""
        ...

    def embed(self, window: Any) -> NDArray[np.float32]:
        """Shape (dims,), of any length but 0."""
        ...


class LocalEmbedder:
    """Implements `Embedder`, but for what its heirs say of themselves."""

    spec: str
    before_query = before_passage = ""  # what the model wants to stand before a text

    def __init__(self, name: str, nice: int, patience: float | None = None) -> None:
        """`nice` and `patience` as for ModelThreads."""
        self._threads = ModelThreads(name, nice, at_once(), patience)
        self._loading = asyncio.Lock()
        self._model: Model | None = None
        self._dims: int | None = None

    @property
    def dims(self) -> int:
        if self._dims is None:
            raise RuntimeError(f"{self.spec} is not started: its dimensions are not known yet")
        return self._dims

    async def start(self) -> None:
        async with self._loading:
            if self._model is None:
                # Not in a thread that gives way: others wait for this.
                model = await asyncio.to_thread(self._load)
                tried = await asyncio.to_thread(model.embed, model.read("Pagewire")[0])
                self._dims = unit_vectors([tried], 1, None, self.spec).shape[1]
                self._model = model
                await asyncio.to_thread(_give_back)

    async def look_again(self) -> None:
        pass

    async def aclose(self) -> None:
        await self._threads.aclose()

    async def passages(self, texts: Sequence[str], *, urgent: bool = True) -> Vectors:
        """Of a long text all is read: its vector is the mean over its windows, by their lengths."""
        await self.start()
        assert self._model
        priority = SAVE if urgent else BULK
        read = await self._threads.each(
            self._model.read, [self._safe(self.before_passage + text) for text in texts], priority=priority
        )
        windows = [window for own in read for window in own]
        made = await self._threads.each(self._model.embed, windows, priority=priority)
        # A long text's vector is the mean over all its tokens, but for its length, which is put right below.
        parts = split_into(zip(windows, made, strict=True), map(len, read))
        whole = [np.sum([len(window) * vector for window, vector in own], axis=0) for own in parts]
        return unit_vectors(np.reshape(whole, (len(texts), self.dims)), len(texts), self.dims, self.spec)

    async def query(self, text: str) -> Vectors:
        """Of a long question, what the model reads at once: what follows would hold up those of others."""
        await self.start()
        assert self._model
        read = await self._threads.run(self._model.read, self._safe(self.before_query + text), priority=QUESTION)
        made = await self._threads.run(self._model.embed, read[0], priority=QUESTION)
        vector: Vectors = unit_vectors([made], 1, self.dims, self.spec)[0]
        return vector

    def _load(self) -> Model:
        """Raises: Permanent, Retryable: says what to do."""
        raise NotImplementedError

    @staticmethod
    def _safe(text: str) -> str:
        return readable(text[:LONGEST])


def _give_back() -> None:
    """To the system, what was needed to load a model: glibc keeps it, 60 MB of the bundled one's."""
    with suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)
