"""Embedders whose model computes in this process: one window of tokens a call, questions first.

texts ─▶ read ─▶ windows ─▶ the model ─▶ vectors of windows ─▶ one vector for each text
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

MAX_CHARS = 100_000  # read of a text; more would hardly change its vector


class Model(Protocol):
    """A model that several threads call at once."""

    def read(self, text: str) -> list[Any]:
        """The text's tokens, in windows with a length."""
        ...

    def embed(self, window: Any) -> NDArray[np.float32]:
        """The window's vector: shape (dims,), of any length but 0."""
        ...


class LocalEmbedder:
    """Implements `Embedder`. Subclasses add `_load` and the model's properties."""

    spec: str
    before_query = before_passage = ""  # the prefixes that the model was trained with

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
                # Not in a thread of low priority: others wait for the model.
                model = await asyncio.to_thread(self._load)
                tried = await asyncio.to_thread(model.embed, model.read("Pagewire")[0])
                self._dims = unit_vectors([tried], 1, None, self.spec).shape[1]
                self._model = model
                await asyncio.to_thread(_give_back)

    async def recheck(self) -> None:
        pass

    async def aclose(self) -> None:
        await self._threads.aclose()

    async def passages(self, texts: Sequence[str], *, urgent: bool = True) -> Vectors:
        """Vectors of whole texts. A long text's vector is the mean over its windows, weighted by length."""
        await self.start()
        assert self._model
        priority = SAVE if urgent else BULK
        read = await self._threads.each(
            self._model.read, [self._safe(self.before_passage + text) for text in texts], priority=priority
        )
        windows = [window for own in read for window in own]
        made = await self._threads.each(self._model.embed, windows, priority=priority)
        # The weighted sum is the mean over all tokens up to its length, which `unit_vectors` normalizes.
        parts = split_into(zip(windows, made, strict=True), map(len, read))
        whole = [np.sum([len(window) * vector for window, vector in own], axis=0) for own in parts]
        return unit_vectors(np.reshape(whole, (len(texts), self.dims)), len(texts), self.dims, self.spec)

    async def query(self, text: str) -> Vectors:
        """The vector of a question's first window only: a long question would delay those of others."""
        await self.start()
        assert self._model
        read = await self._threads.run(self._model.read, self._safe(self.before_query + text), priority=QUESTION)
        made = await self._threads.run(self._model.embed, read[0], priority=QUESTION)
        vector: Vectors = unit_vectors([made], 1, self.dims, self.spec)[0]
        return vector

    def _load(self) -> Model:
        """Load the model. Raises: Permanent, Retryable: the message says what to do."""
        raise NotImplementedError

    @staticmethod
    def _safe(text: str) -> str:
        return readable(text[:MAX_CHARS])


def _give_back() -> None:
    """Return the memory of loading a model to the system. glibc would keep it: 60 MB for the bundled model."""
    with suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)
