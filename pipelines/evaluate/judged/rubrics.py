"""Statements that an answer must make, or must not make, in whatever words."""

from __future__ import annotations

from typing import Literal

from pipelines.evaluate.dataset import Case
from pipelines.evaluate.judged.claims import in_order
from pipelines.evaluate.judged.judge import Decided, Judge, parsed
from pipelines.evaluate.judged.material import asked, numbered
from pipelines.evaluate.judged.measure import Judgement, said
from pipelines.evaluate.measures import Observed

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

    async def of(self, case: Case, observed: Observed, judge: Judge) -> Judgement:
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
        self, case: Case, text: str, statements: tuple[str, ...], judge: Judge
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
