"""Which strategies there are. The names are those of the setting `strategy`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pipelines.query.answer.strategies.base import Strategy, StrategyContext
from pipelines.query.answer.strategies.chain_of_thought import ChainOfThought
from pipelines.query.answer.strategies.looking import ReAct, SelfAsk, ToolCalls
from pipelines.query.answer.strategies.plain import Plain
from pipelines.query.answer.strategies.retrieval_gate import RetrievalGate
from pipelines.runtime.settings import StrategyName

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
