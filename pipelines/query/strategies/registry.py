"""Which strategies there are. The names are those of the setting `strategy`."""

from __future__ import annotations

from collections.abc import Mapping

from pipelines.query.ports import ChatModel
from pipelines.query.strategies.base import Finder, Means, Strategy
from pipelines.query.strategies.plain import Plain
from pipelines.runtime.settings import StrategyName
from prompts.loader import load

PROMPTS = ("answer",)


def strategies(model: ChatModel, finder: Finder) -> Mapping[StrategyName, Strategy]:
    """All of them. Raises: PromptError."""
    means = Means(model, {name: load(name) for name in PROMPTS}, finder)
    return {"plain": Plain(means)}
