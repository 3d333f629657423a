"""Courtesy: the model answers from the conversation alone, without sources."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from time import perf_counter
from typing import ClassVar

from pipelines.query.answer.strategies.base import Piece, StrategyContext, Task, asked, cited


class Courtesy:
    """The strategy for courtesies; sites cannot choose it."""

    searches: ClassVar = False

    def __init__(self, means: StrategyContext) -> None:
        self._means = means

    async def run(self, task: Task) -> AsyncGenerator[Piece, None]:
        """Raises: ModelError."""
        messages = asked(self._means, "courtesy", task, {"asked": task.retrieved.request.question})
        model = self._means.model("courtesy", task)
        async with aclosing(cited(model, messages, (), perf_counter(), task)) as pieces:
            async for piece in pieces:
                yield piece
