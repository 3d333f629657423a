"""What a judged measure is, what it needs of a model, and what a judge reads: between marks that no page can write."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from pipelines.evaluate.dataset import Case
from pipelines.evaluate.judged.judge import EvaluationJudge
from pipelines.evaluate.measures import AnswerPassage, Observed
from pipelines.evaluate.run import Run, VerdictKey
from prompts.loader import load

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


class JudgingTask(NamedTuple):
    """One measure of one answer, the first or a further time."""

    case: Case
    measure: JudgedMeasure
    repeat: int


def fingerprint(measure: JudgedMeasure) -> str:
    """Of a measure's prompts and numbers; it tells the verdicts of two wordings apart."""
    return _fingerprint(measure.prompts) + measure.variant


@cache
def _fingerprint(prompts: tuple[str, ...]) -> str:
    return "+".join(load(f"evaluate/{name}").fingerprint for name in prompts)


def key(case: Case, measure: JudgedMeasure, judge: str, repeat: int = 0) -> VerdictKey:
    """Where its verdict is kept."""
    return VerdictKey(case.id, measure.name, judge, fingerprint(measure), repeat)


def applying(cases: Sequence[Case], run: Run, measure: JudgedMeasure) -> list[Case]:
    """The cases whose answers a measure can be asked of: all of them are in its denominator."""
    seen = (case for case in cases if case.id in run.observed)
    return [case for case in seen if measure.applies(case, run.observed[case.id])]


def decided(run: Run, one: JudgingTask, judge: str) -> bool:
    """Whether its verdict is there."""
    verdict = run.verdicts.get(key(one.case, one.measure, judge, one.repeat))
    return verdict is not None and verdict.unjudged is None


def tasks(cases: Sequence[Case], run: Run, measures: Sequence[JudgedMeasure], repeats: int) -> list[JudgingTask]:
    """All that a judge is to decide, decided or not."""
    return [
        JudgingTask(case, measure, repeat)
        for measure in measures
        for case in applying(cases, run, measure)
        for repeat in range(repeats)
    ]
