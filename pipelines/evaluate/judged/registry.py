"""All judged measures, by the names that the command takes; those of claims are in claims.py beside this file."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Literal, get_args

from pydantic import Field

from pipelines.evaluate.dataset import Case
from pipelines.evaluate.judged.claims import MOST_REFERENCES, ClaimsFC, Faithfulness, Statements
from pipelines.evaluate.judged.judge import Decided, EvaluationJudge, parsed
from pipelines.evaluate.judged.measure import JudgedMeasure, Judgement, asked, fenced, readable, said
from pipelines.evaluate.measures import Observed
from pipelines.runtime.errors import WrongUse
from schemas.evaluation import JudgeNumbers

BEST = 5.0
RIGHT = 4.0  # from here on it is right
MARK_TOKENS = 400


class _Score(Decided):
    reason: str
    score: Annotated[float, Field(ge=0, le=BEST)]


class Score(JudgedMeasure):
    """A mark with its reason."""

    name = "score"
    about = f"a mark from 0 to {BEST:g} compared with the reference answers; right from {RIGHT:g} on"
    figures = ("judge score", "judge right")
    prompts = ("score",)
    calls = 1

    def applies(self, case: Case, observed: Observed) -> bool:
        return bool(case.answers)

    async def of(self, case: Case, observed: Observed, judge: EvaluationJudge) -> Judgement:
        """Raises: Unjudged, PagewireError."""
        text = said(observed)
        if not text.strip():
            return marked(0.0, "nothing was answered")
        references = fenced("right-answer", case.answers, judge.fence)
        values = {"question": asked(case), "references": references, "answer": text}
        found = await judge.ask(self.prompts[0], values, partial(parsed, _Score), MARK_TOKENS)
        return marked(found.score, found.reason)


def marked(score: float, reason: str) -> Judgement:
    """The figures of a mark between 0 and 5."""
    return Judgement({"judge score": score / BEST, "judge right": float(score >= RIGHT)}, reason)


TOKENS = 200


class _Informationless(Decided):
    reason: str
    informationless: bool


class Informationless(JudgedMeasure):
    """Answers that leave the question open. The judge reads refusals, too: one may say something."""

    name = "informationless"
    about = "the answer says something of what was asked if it can be answered, and only then"
    figures = ("informative",)
    prompts = ("informationless",)
    calls = 1

    def applies(self, case: Case, observed: Observed) -> bool:
        return case.expect in ("answer", "refuse")

    async def of(self, case: Case, observed: Observed, judge: EvaluationJudge) -> Judgement:
        """What failed is wrong either way. Raises: Unjudged, PagewireError."""
        if observed.failed:
            return Judgement({"informative": 0.0}, "it failed")
        found = _Informationless(reason="nothing was answered", informationless=True)
        if observed.answer.strip():
            values = {"question": asked(case), "answer": observed.answer}
            found = await judge.ask(self.prompts[0], values, partial(parsed, _Informationless), TOKENS)
        wanted = case.expect == "refuse"
        return Judgement({"informative": float(found.informationless == wanted)}, found.reason)


class _Needed(Decided):
    needed: tuple[int, ...]


class ContextRelevancy(JudgedMeasure):
    """Which of the sources the answer to the question needed."""

    name = "context"
    about = "share of the sources that were needed for the answer"
    figures = ("context relevancy",)
    prompts = ("relevancy",)
    calls = 1

    def applies(self, case: Case, observed: Observed) -> bool:
        return case.expect == "answer" or (case.expect is None and bool(observed.sources))

    async def of(self, case: Case, observed: Observed, judge: EvaluationJudge) -> Judgement:
        """Raises: Unjudged, PagewireError."""
        sources, text = readable(observed.sources), said(observed)
        if not sources or not text.strip():
            return Judgement({"context relevancy": 0.0}, "nothing was answered" if sources else "nothing was found")

        def read(written: str) -> frozenset[int]:
            numbers = parsed(_Needed, written).needed
            if unknown := sorted(set(numbers) - set(range(1, len(sources) + 1))):
                raise ValueError(f"there are no passages {unknown}")
            return frozenset(numbers)

        values = {
            "question": asked(case),
            "answer": text,
            "sources": fenced("source", (source.text for source in sources), judge.fence),
        }
        needed = await judge.ask(self.prompts[0], values, read, TOKENS)
        return Judgement({"context relevancy": len(needed) / len(sources)})


class _Relation(Decided):
    reason: str
    relation: Literal["equivalent", "subset", "superset", "contradiction", "independent"]


class RubricsFC(JudgedMeasure):
    """Factual correctness by one choice: how the answer relates to a reference answer."""

    name = "rubrics"
    about = "what answer and reference answer are to each other: equivalent, subset, superset, contradiction, ..."
    figures = ("rubrics",)
    prompts = ("rubrics",)
    calls = 1

    def __init__(self, numbers: JudgeNumbers = JudgeNumbers()) -> None:
        self._numbers = numbers
        self.variant = numbers.label(*get_args(_Relation.model_fields["relation"].annotation))

    def applies(self, case: Case, observed: Observed) -> bool:
        return bool(case.answers)

    async def of(self, case: Case, observed: Observed, judge: EvaluationJudge) -> Judgement:
        """Of several reference answers the best counts. Raises: Unjudged, PagewireError."""
        text = said(observed)
        if not text.strip():
            return Judgement({"rubrics": 0.0}, "nothing was answered")
        found = []
        for reference in case.answers[:MOST_REFERENCES]:
            values = {"question": asked(case), "answer": text, "reference": reference}
            each = await judge.ask(self.prompts[0], values, partial(parsed, _Relation), TOKENS)
            worth: float = getattr(self._numbers, each.relation)
            found.append(Judgement({"rubrics": worth}, f"{each.relation}: {each.reason}"))
        return max(found, key=lambda one: one.figures["rubrics"])


ALL = "all"


def measures(numbers: JudgeNumbers = JudgeNumbers()) -> tuple[JudgedMeasure, ...]:
    """All of them, in our order."""
    return (
        Score(),
        ClaimsFC(numbers),
        Faithfulness(),
        ContextRelevancy(),
        RubricsFC(numbers),
        Statements(),
        Informationless(),
    )


JUDGED = measures()


def named(names: Sequence[str], numbers: JudgeNumbers = JudgeNumbers()) -> tuple[JudgedMeasure, ...]:
    """The measures of these names, in our order. Raises: WrongUse: there is no such."""
    known = {measure.name for measure in JUDGED}
    if unknown := [name for name in names if name not in {*known, ALL}]:
        raise WrongUse(f"no judged measure {unknown[0]!r}; there are {', '.join((ALL, *sorted(known)))}")
    return tuple(measure for measure in measures(numbers) if ALL in names or measure.name in names)
