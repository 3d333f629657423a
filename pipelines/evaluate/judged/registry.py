"""All judged measures, by the names that the command takes; those of claims are in claims.py beside this file."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Literal

from pydantic import Field

from pipelines.evaluate.dataset import Case
from pipelines.evaluate.judged.claims import ClaimsFC, Faithfulness, in_order
from pipelines.evaluate.judged.judge import Decided, EvaluationJudge, parsed
from pipelines.evaluate.judged.measure import JudgedMeasure, Judgement, asked, fenced, numbered, readable, said
from pipelines.evaluate.measures import Observed
from pipelines.runtime.errors import WrongUse

BEST = 5.0
RIGHT = 4.0  # from here on it is right
MARK_TOKENS = 400


class _Score(Decided):
    reason: str
    score: Annotated[float, Field(ge=0, le=BEST)]


class Score:
    """A mark with its reason."""

    name = "score"
    about = f"a mark from 0 to {BEST:g} compared with the reference answers; right from {RIGHT:g} on"
    figures = ("judge score", "judge right")
    prompts = ("score",)

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


class Informationless:
    """Answers that leave the question open. The judge reads refusals, too: one may say something."""

    name = "informationless"
    about = "the answer says something of what was asked if it can be answered, and only then"
    figures = ("informative",)
    prompts = ("informationless",)

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


ENOUGH = 0.4  # share of the sources from which on more of them would be no better: answers need a few, not all


class _Relevant(Decided):
    relevant: tuple[int, ...]


class ContextRelevancy:
    """Which of the sources hold a part of the answer."""

    name = "context"
    about = f"share of the sources that help to answer; {ENOUGH:g} and more count as 1"
    figures = ("context relevancy",)
    prompts = ("relevancy",)

    def applies(self, case: Case, observed: Observed) -> bool:
        return case.expect == "answer" or (case.expect is None and bool(observed.sources))

    async def of(self, case: Case, observed: Observed, judge: EvaluationJudge) -> Judgement:
        """Raises: Unjudged, PagewireError."""
        sources = readable(observed.sources)
        if not sources:
            return Judgement({"context relevancy": 0.0}, "nothing was found")

        def read(text: str) -> frozenset[int]:
            numbers = parsed(_Relevant, text).relevant
            if unknown := sorted(set(numbers) - set(range(1, len(sources) + 1))):
                raise ValueError(f"there are no passages {unknown}")
            return frozenset(numbers)

        values = {
            "question": asked(case),
            "sources": fenced("source", (source.text for source in sources), judge.fence),
        }
        relevant = await judge.ask(self.prompts[0], values, read, TOKENS)
        return Judgement({"context relevancy": rounded(len(relevant) / len(sources))})


def rounded(share: float) -> float:
    """The figure of a share of sources."""
    return 1.0 if share >= ENOUGH else share


VERDICT_TOKENS = 24  # for each statement

Relation = Literal["says", "implies", "partly", "contradicts", "not said"]
_NOT_SAID: Relation = "not said"
REQUIRED: dict[Relation, float] = {"says": 1.0, "implies": 1.0, "partly": 0.5, "contradicts": 0.0, "not said": 0.0}
FORBIDDEN: dict[Relation, float] = {relation: 1.0 - value for relation, value in REQUIRED.items()}


class _Verdict(Decided):
    n: int
    relation: Relation


class _Verdicts(Decided):
    verdicts: tuple[_Verdict, ...]


class RubricsFC:
    """The statements of a case, `must_say` and `must_not_say`, held against the answer."""

    name = "rubrics"
    about = "share of the statements that the answer must make and makes, or must not make and does not"
    figures = ("rubrics", "must say", "must not say")
    prompts = ("rubrics",)

    def applies(self, case: Case, observed: Observed) -> bool:
        return bool(case.must_say or case.must_not_say)

    async def of(self, case: Case, observed: Observed, judge: EvaluationJudge) -> Judgement:
        """Raises: Unjudged, PagewireError."""
        # What cites nothing says nothing of what it must; what it must not say it must not say there either.
        required = case.must_say if said(observed).strip() else ()
        statements = (*required, *case.must_not_say)
        relations: tuple[Relation, ...] = tuple(_NOT_SAID for _ in statements)
        if statements and observed.answer.strip():
            relations = await self._relations(case, observed.answer, statements, judge)
        if not required:
            relations = (*(_NOT_SAID for _ in case.must_say), *relations)
        return weighed(case, relations)

    async def _relations(
        self, case: Case, text: str, statements: tuple[str, ...], judge: EvaluationJudge
    ) -> tuple[Relation, ...]:
        def read(written: str) -> tuple[Relation, ...]:
            verdicts = parsed(_Verdicts, written).verdicts
            found = {each.n: each.relation for each in verdicts}
            return in_order(found, [each.n for each in verdicts], len(statements))

        values = {"question": asked(case), "answer": text, "statements": numbered(statements)}
        return await judge.ask(self.prompts[0], values, read, VERDICT_TOKENS * (len(statements) + 2))


def weighed(case: Case, relations: tuple[Relation, ...]) -> Judgement:
    """The figures, from the relations of the statements that must be said and of those that must not."""
    required = [REQUIRED[relation] for relation in relations[: len(case.must_say)]]
    forbidden = [FORBIDDEN[relation] for relation in relations[len(case.must_say) :]]
    sides = {"rubrics": [*required, *forbidden], "must say": required, "must not say": forbidden}
    figures = {name: sum(values) / len(values) for name, values in sides.items() if values}
    wrong = [
        f"{relation}: {statement}"
        for statement, relation, value in zip(
            (*case.must_say, *case.must_not_say), relations, (*required, *forbidden), strict=True
        )
        if value < 1
    ]
    return Judgement(figures, " | ".join(wrong))


ALL = "all"
JUDGED: tuple[JudgedMeasure, ...] = (
    Score(),
    ClaimsFC(),
    Faithfulness(),
    ContextRelevancy(),
    RubricsFC(),
    Informationless(),
)


def named(names: Sequence[str]) -> tuple[JudgedMeasure, ...]:
    """The measures of these names, in our order. Raises: WrongUse: there is no such."""
    known = {measure.name for measure in JUDGED}
    if unknown := [name for name in names if name not in {*known, ALL}]:
        raise WrongUse(f"no judged measure {unknown[0]!r}; there are {', '.join((ALL, *sorted(known)))}")
    return tuple(measure for measure in JUDGED if ALL in names or measure.name in names)
