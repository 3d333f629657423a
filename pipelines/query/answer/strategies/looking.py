"""Strategies that run the tool loop, and then answer from its sources.

| strategy | tools | |
| --- | --- | --- |
| self-ask | search | a question is taken apart into smaller ones (Press et al. 2022) |
| react | search, lookup | think, act, observe (Yao et al. 2022) |
| tools | search, page, calendar, those of the site | what must be worked out; asks the visitor for what is missing |

A missing argument becomes a question to the visitor. The rephrase stage makes the visitor's reply self-contained, with
the argument in it; a pending call of a site's own tool returns with the question and the arguments known so far.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import ClassVar

from pipelines.query.answer.strategies.base import Piece, StrategyContext, Task, write
from pipelines.query.answer.strategies.loop import ToolLoop, Way


class Looking:
    """Calls the model once for each round, and once for the answer."""

    searches: ClassVar = True
    way: ClassVar[Way]

    def __init__(self, means: StrategyContext) -> None:
        self._means = means

    async def run(self, task: Task) -> AsyncGenerator[Piece, None]:
        request = task.retrieved.request
        of_site = await self._means.tools(request.site) if self.way.of_site else ()
        loop = ToolLoop(self._means, task, self.way, [tool for tool in of_site if tool.is_for(request.groups)])
        async with aclosing(loop.run()) as pieces:
            async for piece in pieces:
                yield piece
        if loop.pending is not None:
            yield loop.pending
        if not loop.library.all and not loop.facts and not loop.asks:
            return
        async with aclosing(write(self._means, task, loop.library.ranked, loop.notes, loop.facts)) as pieces:
            async for piece in pieces:
                yield piece


class SelfAsk(Looking):
    """One smaller question for each round."""

    way = Way("self-ask", ("search",), rounds=5, thinks=True)


class ReAct(Looking):
    """One thought for each round."""

    way = Way("react", ("search", "lookup"), rounds=5, thinks=True)


class ToolCalls(Looking):
    """Works out facts that no passage contains, with tools."""

    way = Way("tools", ("search", "page", "date_calculator", "opening_hours"), rounds=3, of_site=True)
