"""All strategies, by their names in the setting `strategy`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import ClassVar

from pipelines.query.answer.strategies.base import Piece, Strategy, StrategyContext, Task, write
from pipelines.query.answer.strategies.looking import ReAct, SelfAsk, ToolCalls
from pipelines.query.answer.strategies.retrieval_gate import RetrievalGate
from pipelines.runtime.settings import StrategyName


class ChainOfThought:
    """The model first reasons over the sources, then writes from its notes: two calls.

    Visitors see only the answer; the notes are in the trace.
    """

    searches: ClassVar = False

    def __init__(self, means: StrategyContext) -> None:
        self._means = means

    async def run(self, task: Task) -> AsyncGenerator[Piece, None]:
        async with aclosing(write(self._means, task, task.retrieved.sources, thinks=True)) as pieces:
            async for piece in pieces:
                yield piece


class Plain:
    """The model writes the answer from the retrieved sources, in one call. The default."""

    searches: ClassVar = False

    def __init__(self, means: StrategyContext) -> None:
        self._means = means

    async def run(self, task: Task) -> AsyncGenerator[Piece, None]:
        async with aclosing(write(self._means, task, task.retrieved.sources)) as pieces:
            async for piece in pieces:
                yield piece


STRATEGIES: Mapping[StrategyName, Callable[[StrategyContext], Strategy]] = {
    "plain": Plain,
    "retrieval-gate": RetrievalGate,
    "self-ask": SelfAsk,
    "react": ReAct,
    "chain-of-thought": ChainOfThought,
    "tools": ToolCalls,
}


def strategies(means: StrategyContext) -> Mapping[StrategyName, Strategy]:
    """All of them."""
    return {name: make(means) for name, make in STRATEGIES.items()}
