"""Models that compute in this process, in threads of their own, and embedders that are one.

texts ─▶ read ─▶ windows of tokens ─▶ calls of the model ─▶ vectors of windows ─▶ one vector for each text
"""

from __future__ import annotations

import asyncio
import ctypes
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from adapters.embedders.base import Dimensions, Vectors, readable, unit_vectors
from adapters.embedders.model_threads import BULK, QUESTION, SAVE, ModelThreads
from pipelines.runtime import tracing
from pipelines.runtime.errors import Permanent

MAX_CHARS = 100_000  # read of a text; more would hardly change its vector


class LocalModel:
    """Loads a model once. Subclasses add `_load` and what they call in `_threads`. Call `aclose` at the end."""

    needs: str  # packages, and how to install them

    def __init__(self, threads: ModelThreads) -> None:
        self._threads = threads
        self._loading = asyncio.Lock()
        self._model: Any = None

    async def start(self) -> None:
        """Load the model. Raises: Permanent: package or weights are missing; the message says what to do."""
        async with self._loading:
            if self._model is None:
                # Not in a thread of low priority: others wait for the model.
                try:
                    self._model = await asyncio.to_thread(self._load)
                except ImportError as err:
                    raise Permanent(f"{self._threads.name} needs {self.needs} ({err})") from err
                await asyncio.to_thread(_give_back)

    async def aclose(self) -> None:
        await self._threads.aclose()

    def _load(self) -> Any:
        raise NotImplementedError


class Model(Protocol):
    """A model of a `LocalEmbedder`. As many threads call it at once as the embedder has."""

    call_tokens: int  # of a call of several windows, padding included; 0: each window has a call of its own

    def read(self, text: str) -> list[Any]:
        """The text's tokens, in one window or more with a length."""
        ...

    def embed(self, windows: list[Any]) -> NDArray[np.float32]:
        """The windows' vectors: shape (len(windows), dims), of any length but 0."""
        ...


class LocalEmbedder(LocalModel, Dimensions):
    """Implements `Embedder`. Subclasses add the model's properties; `_load` returns a `Model`."""

    before_query = before_passage = ""  # the prefixes that the model was trained with

    @property
    def device(self) -> str:
        return str(getattr(self._model, "device", "cpu"))

    async def start(self) -> None:
        await super().start()
        if self._dims is None:
            self._dims = (await self._embedded(["Pagewire"], QUESTION)).shape[1]

    async def recheck(self) -> None:
        pass

    async def passages(self, texts: Sequence[str], *, urgent: bool = True) -> Vectors:
        """Vectors of whole texts. A long text's vector is the mean over its windows, weighted by length."""
        await self.start()
        if not texts:
            return np.empty((0, self.dims), np.float32)
        with tracing.inference("embeddings", self.spec, ""):
            return await self._embedded([self.before_passage + text for text in texts], SAVE if urgent else BULK)

    async def query(self, text: str) -> Vectors:
        """The vector of a question's first window only: a long question would delay those of others."""
        await self.start()
        with tracing.inference("embeddings", self.spec, ""):
            vector: Vectors = (await self._embedded([self.before_query + text], QUESTION, windows=1))[0]
        return vector

    async def _embedded(self, texts: Sequence[str], priority: int, windows: int | None = None) -> Vectors:
        """`windows`: the most that are read of a text."""
        read, made = await self._called(self._model.embed, texts, priority, windows)
        lengths = np.array([len(window) for own in read for window in own], np.float32)
        # The weighted sum is the mean over all tokens up to its length, which `unit_vectors` normalizes.
        whole = np.add.reduceat(np.stack(made) * lengths[:, None], np.cumsum([0, *map(len, read[:-1])]))
        return unit_vectors(whole, len(texts), self._dims, self.spec)

    async def _called(
        self, call: Callable[[list[Any]], Iterable[Any]], texts: Sequence[str], priority: int, windows: int | None
    ) -> tuple[list[list[Any]], list[Any]]:
        """The windows of each text, and what the model's `call` makes of each window."""
        safe = [readable(text[:MAX_CHARS]) for text in texts]
        read = [own[:windows] for own in await self._threads.each(self._model.read, safe, priority=priority)]
        every = [window for own in read for window in own]
        calls = batches([len(window) for window in every], self._model.call_tokens)
        together = ([every[place] for place in places] for places in calls)
        made = chain(*await self._threads.each(call, together, priority=priority))
        placed = dict(zip(chain(*calls), made, strict=True))
        return read, [placed[place] for place in range(len(every))]


def batches(lengths: Sequence[int], limit: int) -> list[list[int]]:
    """Groups windows of similar length into calls, as indexes of `lengths`, the shortest first.

    Every window of a call costs as much as its longest. Of XQuAD's 578 chunks, a third is padding in their own order,
    and a twentieth in this one (3,000 tokens a call). A single page fits into one call, and a third of it is padding.

    Args:
        lengths: Tokens of each window.
        limit: Most tokens of a call, padding included; a longer window has a call of its own.
    """
    calls: list[list[int]] = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        if calls and lengths[place] * (len(calls[-1]) + 1) <= limit:
            calls[-1].append(place)
        else:
            calls.append([place])
    return calls


def weights_mark(folder: Path, files: Iterable[Path]) -> str:
    """A fingerprint without reading gigabytes: names and sizes of weights, contents of configurations (JSON)."""
    digest = blake2b(digest_size=4)
    for path in files:
        by_size = f"{path.relative_to(folder)}:{os.stat(path).st_size};".encode()
        digest.update(path.read_bytes() if path.suffix == ".json" else by_size)
    return digest.hexdigest()


def _give_back() -> None:
    """Return the memory of loading a model to the system. glibc would keep it: 60 MB for the bundled model."""
    with suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)
