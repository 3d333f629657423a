"""What a judged measure is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pipelines.evaluate.dataset import Case
from pipelines.evaluate.judged.judge import Judge
from pipelines.evaluate.measures import Observed


@dataclass(frozen=True)
class Judgement:
    """Figures between 0 and 1, by name; of those that the answer does not allow none."""

    figures: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""


class JudgedMeasure(Protocol):
    """One question to the judge, or a few that belong together."""

    @property
    def name(self) -> str: ...

    @property
    def about(self) -> str: ...

    @property
    def figures(self) -> tuple[str, ...]: ...

    @property
    def prompts(self) -> tuple[str, ...]:
        """In prompts/evaluate."""
        ...

    def applies(self, case: Case, observed: Observed) -> bool:
        """Whether this answer to this case can be judged by it: those count in the denominator."""
        ...

    async def of(self, case: Case, observed: Observed, judge: Judge) -> Judgement:
        """Raises: Unjudged, PagewireError: there is no judgement."""
        ...


def said(observed: Observed) -> str:
    """The answer as a visitor takes it: what cites no page is a refusal and says nothing."""
    return "" if observed.failed or observed.refused else observed.answer
