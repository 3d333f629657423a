"""Retrieval gate: the model first decides whether a search is needed, and for which question.

one round ─ NO ──────────────▶ a courtesy, from the conversation alone
          └ search(question) ─▶ the retrieved sources and those of this question ─▶ answer
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import ClassVar

from pipelines.query.answer.strategies.base import Piece, StrategyContext, Task, write
from pipelines.query.answer.strategies.courtesy import Courtesy
from pipelines.query.answer.strategies.loop import ToolLoop, Way

WAY = Way("decide", ("search",), rounds=1)

_NO = re.compile(r"\W*no\W*", re.IGNORECASE)


class RetrievalGate:
    """Two calls of the model. Without a clear decision it answers from the retrieved sources."""

    searches: ClassVar = True

    def __init__(self, means: StrategyContext) -> None:
        self._means = means

    async def run(self, task: Task) -> AsyncGenerator[Piece, None]:
        loop = ToolLoop(self._means, task, WAY)
        async with aclosing(loop.run()) as pieces:
            async for piece in pieces:
                yield piece
        if loop.calls == 0 and _NO.fullmatch(loop.said):
            writing = Courtesy(self._means).run(task)
        elif loop.library.all:
            writing = write(self._means, task, loop.library.ranked)
        else:
            return
        async with aclosing(writing) as pieces:
            async for piece in pieces:
                yield piece
