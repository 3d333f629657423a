"""A model that is asked one thing at a time: its server may be the one that visitors' answers wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from pipelines.evaluate.judged.ports import JudgeModel, Written
from pipelines.runtime.try_limit import Line
from prompts.loader import ChatMessage


class InLine:
    """One per process. What waits in line is not cut off for it while the line moves."""

    def __init__(self, model: JudgeModel) -> None:
        self._model = model
        self._line = Line()
        self._turn = asyncio.Lock()

    async def complete(self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None) -> Written:
        """Raises: as the model does."""
        with self._line.place():
            async with self._turn:
                return await self._model.complete(messages, max_tokens=max_tokens)
