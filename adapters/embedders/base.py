"""The protocol of embedders: text in, unit vectors out. `make_embedder` makes one by its name in the settings."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pipelines.query.search.ports import SearchEmbedder
from pipelines.runtime.errors import Kind, Permanent, Retryable

Vectors = NDArray[np.float32]


class NoVectors(Permanent):
    """The model's output is no set of vectors: the model is broken, or fails on this text."""

    code = "no-vectors"
    kind = Kind.UNKNOWN


class ModelIll(Retryable):
    """The model fails for every text, though it worked at its start. So this text is not the cause."""

    code = "model-ill"


class Embedder(SearchEmbedder, Protocol):
    """One model. Start it first, close it last. All vectors are float32 of length 1, so a dot product is the cosine.

    Accepts any text: empty, long, with NUL or lone surrogates. Calls may run in parallel.
    """

    @property
    def device(self) -> str:
        """Where the started model computes: a processor, a GPU, or the address of a server."""

    async def start(self) -> None:
        """Load the model, once.

        Raises:
            Permanent: package or weights are missing; the message says what to do.
            Retryable: its service is unreachable.
        """

    async def recheck(self) -> None:
        """Check the service's vectors again. Does nothing for a model in this process.

        Raises:
            As `start`.
        """

    async def aclose(self) -> None:
        """Free the model. Nothing can be embedded afterwards."""


class Dimensions:
    """The length of a model's vectors, where only the started model knows it."""

    spec: str
    _dims: int | None = None

    @property
    def dims(self) -> int:
        if self._dims is None:
            raise RuntimeError(f"{self.spec} is not started: its dimensions are not known yet")
        return self._dims


def readable(text: str) -> str:
    """The text without NUL (C strings end there) and lone surrogates (not UTF-8), which tokenizers refuse."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")


def unit_vectors(raw: object, count: int, dims: int | None, model: str) -> Vectors:
    """Check and normalize a model's output: shape (count, dims).

    Raises:
        NoVectors: wrong shape, or numbers that are not finite.
    """
    try:
        vectors = np.asarray(raw, dtype=np.float32)
    except (TypeError, ValueError) as err:
        raise NoVectors(f"{model} answered with something that is no vectors") from err
    if vectors.ndim != 2 or len(vectors) != count or not vectors.shape[1]:
        raise NoVectors(f"{model} answered with an array of shape {vectors.shape} for {count} texts")
    if dims is not None and vectors.shape[1] != dims:
        raise NoVectors(f"{model} answered with {vectors.shape[1]} dimensions instead of {dims}")
    if not np.isfinite(vectors).all():
        raise NoVectors(f"{model} answered with numbers that are not finite")
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if (lengths == 0).any():
        raise NoVectors(f"{model} answered with a vector of zeros")
    unit: Vectors = vectors / lengths
    return unit
