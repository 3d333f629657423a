"""What the query stages need of models; adapters and fakes both fit."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from prompts.loader import ChatMessage
from schemas.answer import Usage

Matrix32 = NDArray[np.float32]


class Embedder(Protocol):
    """Text to vectors of length 1, so that a dot product is a cosine."""

    async def passages(self, texts: Sequence[str]) -> Matrix32:
        """Shape (len(texts), dims)."""
        ...

    async def query(self, text: str) -> Matrix32:
        """Shape (dims,)."""
        ...


@dataclass(frozen=True)
class Delta:
    """A piece of a model's text. The last of a stream carries the usage, zeros if the server does not count."""

    text: str = ""
    usage: Usage | None = None


@dataclass(frozen=True)
class Completion:
    """A model's whole text."""

    text: str
    usage: Usage


class ChatModel(Protocol):
    """A chat model.

    Both calls raise errors of `pipelines.runtime.errors`: Retryable when the model is away, busy or silent for too
    long, Permanent when the same messages will be refused again.
    """

    def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None, temperature: float = 0.0
    ) -> AsyncGenerator[Delta, None]:
        """The answer in pieces; the last Delta, and only that, has `usage`. Closing the iterator stops the model."""
        ...

    async def complete(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None, temperature: float = 0.0
    ) -> Completion:
        """The answer at once."""
        ...
