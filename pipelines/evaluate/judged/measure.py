"""What a judged measure is, what it needs of a model, and what a judge reads: between marks that no page can write."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pipelines.evaluate.dataset import Case
from pipelines.evaluate.judged.judge import EvaluationJudge
from pipelines.evaluate.measures import AnswerPassage, Observed

SOURCE_CHARS = 24_000  # of all sources of an answer together: about 6,000 tokens


def asked(case: Case) -> str:
    """The question, after what the visitor asked before it."""
    return "\n".join((*case.history, case.question))


def numbered(lines: Iterable[str]) -> str:
    """A line each, from 1 on."""
    return "\n".join(f"{n}: {' '.join(line.split())}" for n, line in enumerate(lines, 1))


def fenced(name: str, texts: Iterable[str], fence: str) -> str:
    """Texts, numbered from 1 on."""
    return "\n".join(f'<{name}-{fence} n="{n}">\n{text}\n</{name}-{fence}>' for n, text in enumerate(texts, 1))


def readable(sources: Sequence[AnswerPassage]) -> list[AnswerPassage]:
    """As many as a judge reads, in their order: the cited ones go before the others where it is too much."""
    left, kept = SOURCE_CHARS, set()
    for place, source in sorted(enumerate(sources), key=lambda each: not each[1].cited):
        if source.text and len(source.text) <= left:
            left -= len(source.text)
            kept.add(place)
    return [source for place, source in enumerate(sources) if place in kept]


@dataclass(frozen=True)
class Judgement:
    """Figures between 0 and 1, by name; of those that the answer does not allow none."""

    figures: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""


class JudgedMeasure(ABC):
    """One question to the judge, or a few that belong together."""

    name: str
    about: str
    figures: tuple[str, ...]
    prompts: tuple[str, ...]  # in prompts/evaluate
    calls: int  # of the judge, for a typical answer
    variant: str = ""  # the numbers that are not the usual ones: another variant has verdicts of its own
    rounded_from: float | None = None  # from here on a figure counts as 1 in the view that rounds; None: none does

    @abstractmethod
    def applies(self, case: Case, observed: Observed) -> bool:
        """Whether this answer to this case can be judged by it: those count in the denominator."""

    @abstractmethod
    async def of(self, case: Case, observed: Observed, judge: EvaluationJudge) -> Judgement:
        """Raises: Unjudged, PagewireError: there is no judgement."""


def said(observed: Observed) -> str:
    """The answer as a visitor takes it: what cites no page is a refusal and says nothing."""
    return "" if observed.failed or observed.refused else observed.answer
