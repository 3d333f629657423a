"""Chain of thought: the model reasons over the sources first, out of sight, and writes from its own notes."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import ClassVar

from pipelines.query.answer.strategies.base import Piece, StrategyContext, Task, write


class ChainOfThought:
    """Two calls of the model. Visitors see the answer only; the thoughts are in the trace."""

    searches: ClassVar = False

    def __init__(self, means: StrategyContext) -> None:
        self._means = means

    async def run(self, task: Task) -> AsyncGenerator[Piece, None]:
        async with aclosing(write(self._means, task, task.retrieved.sources, thinks=True)) as pieces:
            async for piece in pieces:
                yield piece
