"""Plain: the answer is written from what was retrieved."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import ClassVar

from pipelines.query.answer.strategies.base import Piece, StrategyContext, Task, write


class Plain:
    """One call of the model. The default."""

    searches: ClassVar = False

    def __init__(self, means: StrategyContext) -> None:
        self._means = means

    async def run(self, task: Task) -> AsyncGenerator[Piece, None]:
        async with aclosing(write(self._means, task, task.retrieved.sources)) as pieces:
            async for piece in pieces:
                yield piece
