"""What judging needs of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from prompts.loader import ChatMessage
from schemas.answer import Usage


class Written(Protocol):
    """What a model wrote."""

    @property
    def text(self) -> str: ...

    @property
    def usage(self) -> Usage:
        """Zeros if the server does not count."""
        ...


class JudgeModel(Protocol):
    """A chat model (adapters.llm)."""

    async def complete(self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None) -> Written:
        """Raises: PagewireError: it gave no answer; Retryable when it may later."""
        ...
