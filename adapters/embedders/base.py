"""What an embedder is: text in, unit vectors out. `make_embedder` picks one by its name in the settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pipelines.query.retrieve.gate import GateProfile
from pipelines.runtime.errors import Permanent, SettingsError
from wiring.settings import Settings

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class EmbedderProfile:
    """What cosines mean; it differs from model to model (SPEC B4, B7).

    Floors are measured by `pagewire bench floors`: fewer than 0.5 % of the right hits fall below. The gate's weights
    are fitted by `pagewire bench gate --fit`.
    """

    short_floor: float  # name, title, description, keywords: the one best hit
    content_floor: float  # content
    gate: GateProfile = field(default_factory=GateProfile)  # uncalibrated: knows only "nothing found"


class Embedder(Protocol):
    """One model. All vectors are float32 of length 1, so a dot product is the cosine.

    Any text is taken: empty, long, with NUL or lone surrogates. Calls may run side by side.
    """

    @property
    def spec(self) -> str:
        """Its name in the settings: `lite`, `bge-m3`, `openai:MODEL`."""

    @property
    def fingerprint(self) -> str:
        """Model, version and use: vectors of equal fingerprints can be compared."""

    @property
    def dims(self) -> int:
        """Length of its vectors; known once started."""

    @property
    def profile(self) -> EmbedderProfile:
        """What its cosines mean."""

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

    async def passages(self, texts: Sequence[str], *, urgent: bool = True) -> Vectors:
        """Embed texts of pages: shape (len(texts), dims).

        Args:
            urgent: Overtakes calls that are not; one that is at work is waited for, a chunk or two.

        Raises:
            Retryable: its service is away or busy.
            Permanent: it refuses, or answers with something that is no set of vectors.
        """

    async def query(self, text: str) -> Vectors:
        """Embed a question: shape (dims,). Overtakes `passages` that wait. Raises as `passages` does."""


def make_embedder(spec: str, settings: Settings) -> Embedder:
    """The embedder that `spec` names, not yet started.

    Imports only what that one needs: torch takes seconds and gigabytes.

    Raises:
        SettingsError: no embedder of this name, or a setting it needs is missing.
    """
    kind, _, model = spec.partition(":")
    if kind == "lite" and not model:
        from adapters.embedders.lite import LiteEmbedder

        return LiteEmbedder(settings.nice)
    if kind == "bge-m3" and not model:
        from adapters.embedders.bge_m3 import BgeM3Embedder

        return BgeM3Embedder(settings.bge_model, settings.nice)
    if kind == "openai" and model:
        from adapters.embedders.openai_api import OpenAIEmbedder

        if settings.openai_api_key is None and settings.openai_base_url is None:
            raise SettingsError(f"embedder {spec!r} needs OPENAI_API_KEY, OPENAI_BASE_URL or both")
        key = settings.openai_api_key.get_secret_value() if settings.openai_api_key else None
        return OpenAIEmbedder(model, base_url=settings.openai_base_url, api_key=key)
    raise SettingsError(f"embedder (PAGEWIRE_EMBEDDER): must be lite, bge-m3 or openai:MODEL, not {spec!r}")


def readable(text: str) -> str:
    """Text that every model's tokenizer takes: no NUL (C strings end there), no lone surrogates (not UTF-8)."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")


def slices(texts: Sequence[str], chars: int, count: int | None = None) -> Iterator[list[str]]:
    """The texts in turn, a call's worth at a time. By hand: what pads them counts, which more-itertools cannot know.

    Args:
        texts: What a model is to embed.
        chars: Most characters of a slice, counting what pads its shorter texts; a longer text is a slice of its own.
        count: Most texts of a slice; default: any number.
    """
    some: list[str] = []
    longest = 0
    for text in texts:
        longest = max(longest, len(text))
        if some and (longest * (len(some) + 1) > chars or len(some) == count):
            yield some
            some, longest = [], len(text)
        some.append(text)
    if some:
        yield some


def unit_vectors(raw: object, count: int, dims: int | None, model: str) -> Vectors:
    """Check and normalise what a model answered: shape (count, dims).

    Raises:
        Permanent: not that many vectors of that length, or not finite.
    """
    try:
        vectors = np.asarray(raw, dtype=np.float32)
    except (TypeError, ValueError) as err:
        raise Permanent(f"{model} answered with something that is no vectors") from err
    if vectors.ndim != 2 or len(vectors) != count or not vectors.shape[1]:
        raise Permanent(f"{model} answered with an array of shape {vectors.shape} for {count} texts")
    if dims is not None and vectors.shape[1] != dims:
        raise Permanent(f"{model} answered with {vectors.shape[1]} dimensions instead of {dims}")
    if not np.isfinite(vectors).all():
        raise Permanent(f"{model} answered with numbers that are not finite")
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if (lengths == 0).any():
        raise Permanent(f"{model} answered with a vector of zeros")
    unit: Vectors = vectors / lengths
    return unit
