"""What an embedder is: text in, unit vectors out. `make_embedder` picks one by its name in the settings."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pipelines.query.search.ports import SearchEmbedder
from pipelines.runtime.errors import Kind, Permanent, Retryable

Vectors = NDArray[np.float32]


class NoVectors(Permanent):
    """The model answered with something that is no set of vectors: it is ill, or this text makes it so."""

    code = "no-vectors"
    kind = Kind.UNKNOWN


class ModelIll(Retryable):
    """The model answers for no text as it did when it was started: whatever the text at hand is, it is not to blame."""

    code = "model-ill"


class Embedder(SearchEmbedder, Protocol):
    """One model, to be started and closed. All vectors are float32 of length 1, so a dot product is the cosine.

    Any text is taken: empty, long, with NUL or lone surrogates. Calls may run side by side.
    """

    async def start(self) -> None:
        """Load the model, once.

        Raises:
            Permanent: it is not installed or its weights are not there; says what to do.
            Retryable: its service is away.
        """

    async def look_again(self) -> None:
        """Ask its service anew what its vectors are like; a model in this process stays as it is.

        Raises:
            As `start`.
        """

    async def aclose(self) -> None:
        """Give back what `start` took; nothing is embedded afterwards."""


def readable(text: str) -> str:
    """Text that every model's tokenizer takes: no NUL (C strings end there), no lone surrogates (not UTF-8)."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")


def unit_vectors(raw: object, count: int, dims: int | None, model: str) -> Vectors:
    """Check and normalise what a model answered: shape (count, dims).

    Raises:
        NoVectors: not that many vectors of that length, or not finite.
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
