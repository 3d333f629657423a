"""Claims: an answer taken apart, and each part held against a reference answer or against the sources.

answer ─▶ ClaimExtractor ─▶ claims ─▶ EntailmentAnalyzer ◀─ reference answer ─▶ precision ┐
reference ─▶ ClaimExtractor ─▶ claims ─▶ EntailmentAnalyzer ◀─ answer ─▶ recall ──────────┴▶ F1      (ClaimsFC)
answer ─▶ ClaimExtractor ─▶ claims ─▶ held against all sources at once ─▶ share that they bear out   (Faithfulness)
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, StringConstraints

from pipelines.evaluate.dataset import Case
from pipelines.evaluate.judged.judge import Decided, EvaluationJudge, parsed
from pipelines.evaluate.judged.measure import JudgedMeasure, Judgement, asked, fenced, numbered, readable, said
from pipelines.evaluate.measures import Observed
from schemas.evaluation import JudgeNumbers

MOST_CLAIMS = 60  # of one text; who finds more has not understood
MOST_REFERENCES = 3  # of a case; each costs calls for its claims and for the answer's
CLAIMS_TOKENS = 2_000
DECISION_TOKENS = 60
VERDICT_TOKENS = 24  # for each claim

Relation = Literal["entailed", "contradicted", "independent"]
Borne = Literal["entailed", "contradicted", "neither"]
Claim = Annotated[str, StringConstraints(min_length=1)]
Result = TypeVar("Result")


class _Claims(Decided):
    claims: Annotated[tuple[Claim, ...], Field(max_length=MOST_CLAIMS)]


class _Follows(Decided):
    follows: bool


class _Contradicts(Decided):
    contradicts: bool


class _Verdict(Decided):
    n: int
    relation: Borne


class _Verdicts(Decided):
    verdicts: tuple[_Verdict, ...]


class ClaimExtractor:
    """The single statements that a text makes in reply to a question."""

    prompt = "claims"

    async def claims(self, question: str, text: str, judge: EvaluationJudge) -> tuple[str, ...]:
        """Each once. Raises: Unjudged, PagewireError."""
        if not text.strip():
            return ()
        values = {"question": question, "text": text}
        found = await judge.ask(self.prompt, values, partial(parsed, _Claims), CLAIMS_TOKENS)
        return tuple(dict.fromkeys(found.claims))


class EntailmentAnalyzer:
    """Whether a text entails a statement, contradicts it, or neither: two calls side by side."""

    prompts = ("follows", "contradicts")

    async def relation(self, question: str, text: str, statement: str, judge: EvaluationJudge) -> Relation:
        """A judge that says both has decided neither. Raises: Unjudged, PagewireError."""
        if not text.strip():
            return "independent"
        values = {"question": question, "text": text, "statement": statement}
        follows, contradicts = await side_by_side(
            judge.ask("follows", values, lambda text: parsed(_Follows, text).follows, DECISION_TOKENS),
            judge.ask("contradicts", values, lambda text: parsed(_Contradicts, text).contradicts, DECISION_TOKENS),
        )
        if follows == contradicts:
            return "independent"
        return "entailed" if follows else "contradicted"

    async def relations(
        self, question: str, text: str, statements: Sequence[str], judge: EvaluationJudge
    ) -> tuple[Relation, ...]:
        """One for each statement, side by side."""
        return await side_by_side(*(self.relation(question, text, each, judge) for each in statements))


class ClaimsFC(JudgedMeasure):
    """Factual correctness: the claims of the answer against those of a reference answer.

    An entailed claim is worth 1, a contradicted one 0, an independent one `f`; precision is the mean over the answer's
    claims, recall over the reference's.
    """

    name = "claims"
    about = "claims of the answer that a reference answer bears out, and the other way round"
    figures = ("claims precision", "claims recall", "claims F1")
    prompts = (ClaimExtractor.prompt, *EntailmentAnalyzer.prompts)
    calls = 18  # typical: four claims on each side

    def __init__(self, numbers: JudgeNumbers = JudgeNumbers()) -> None:
        self.variant = numbers.label("f")
        self.rounded_from = numbers.rounded_from
        self._worth: dict[Relation, float] = {"entailed": 1.0, "contradicted": 0.0, "independent": numbers.f}
        self._extractor = ClaimExtractor()
        self._analyzer = EntailmentAnalyzer()

    def applies(self, case: Case, observed: Observed) -> bool:
        return bool(case.answers)

    async def of(self, case: Case, observed: Observed, judge: EvaluationJudge) -> Judgement:
        """Of several reference answers the best counts. Raises: Unjudged, PagewireError."""
        text = said(observed)
        if not text.strip():
            return Judgement({"claims recall": 0.0, "claims F1": 0.0}, "nothing was answered")
        references = case.answers[:MOST_REFERENCES]
        found = [await self._compared(asked(case), text, reference, judge) for reference in references]
        return max(found, key=lambda one: one.figures.get("claims F1", -1.0))

    async def _compared(self, question: str, text: str, reference: str, judge: EvaluationJudge) -> Judgement:
        ours, theirs = await side_by_side(
            self._extractor.claims(question, text, judge), self._extractor.claims(question, reference, judge)
        )
        if not theirs:
            return Judgement(reason="the reference answer claims nothing")
        forth, back = await side_by_side(
            self._analyzer.relations(question, reference, ours, judge),
            self._analyzer.relations(question, text, theirs, judge),
        )
        return Judgement(
            self._precision_recall(forth, back),
            told(("not in the reference", ours, forth), ("not in the answer", theirs, back)),
        )

    def _precision_recall(self, forth: Sequence[Relation], back: Sequence[Relation]) -> dict[str, float]:
        """Of the answer's claims, and of the reference's, at least one; an answer without claims has no precision."""
        recall = self._mean(back)
        if not forth:
            return {"claims recall": recall, "claims F1": 0.0}
        precision = self._mean(forth)
        f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        return {"claims precision": precision, "claims recall": recall, "claims F1": f1}

    def _mean(self, relations: Sequence[Relation]) -> float:
        return sum(self._worth[relation] for relation in relations) / len(relations)


class Statements(JudgedMeasure):
    """The statements of a case, `must_say` and `must_not_say`, held against the answer."""

    name = "statements"
    about = "share of the statements that the answer must make and makes, or must not make and does not"
    figures = ("statements", "must say", "must not say")
    prompts = EntailmentAnalyzer.prompts
    calls = 4

    def applies(self, case: Case, observed: Observed) -> bool:
        return bool(case.must_say or case.must_not_say)

    async def of(self, case: Case, observed: Observed, judge: EvaluationJudge) -> Judgement:
        """What cites nothing makes no statement that it must make, but may make one that it must not.

        Raises: Unjudged, PagewireError."""
        required, forbidden = await side_by_side(
            EntailmentAnalyzer().relations(asked(case), said(observed), case.must_say, judge),
            EntailmentAnalyzer().relations(asked(case), observed.answer, case.must_not_say, judge),
        )
        made = [float(relation == "entailed") for relation in required]
        avoided = [float(relation != "entailed") for relation in forbidden]
        sides = {"statements": [*made, *avoided], "must say": made, "must not say": avoided}
        wrong = [f"lacking: {each}" for each, value in zip(case.must_say, made, strict=True) if not value]
        wrong += [f"said: {each}" for each, value in zip(case.must_not_say, avoided, strict=True) if not value]
        return Judgement({name: sum(some) / len(some) for name, some in sides.items() if some}, " | ".join(wrong))


class Faithfulness(JudgedMeasure):
    """Whether the answer says what its sources say."""

    name = "faithfulness"
    about = "share of the answer's claims that its sources bear out"
    figures = ("faithfulness",)
    prompts = (ClaimExtractor.prompt, "faithfulness")
    calls = 2

    def __init__(self) -> None:
        self._extractor = ClaimExtractor()

    def applies(self, case: Case, observed: Observed) -> bool:
        return bool(said(observed).strip())

    async def of(self, case: Case, observed: Observed, judge: EvaluationJudge) -> Judgement:
        """An answer without claims has no figure. Raises: Unjudged, PagewireError."""
        claims = await self._extractor.claims(asked(case), observed.answer, judge)
        if not claims:
            return Judgement(reason="the answer claims nothing")
        sources = fenced("source", (source.text for source in readable(observed.sources)), judge.fence)
        relations = await related(judge, self.prompts[1], {"sources": sources}, claims)
        share = relations.count("entailed") / len(relations)
        return Judgement({"faithfulness": share}, told(("not borne out", claims, relations)))


async def related(
    judge: EvaluationJudge, prompt: str, values: dict[str, str], claims: Sequence[str]
) -> tuple[Borne, ...]:
    """One relation for each claim; an answer that leaves one out is not readable."""
    if not claims:
        return ()

    def read(text: str) -> tuple[Borne, ...]:
        verdicts = parsed(_Verdicts, text).verdicts
        numbers = sorted(each.n for each in verdicts)
        if numbers != list(range(1, len(claims) + 1)):
            raise ValueError(f"verdicts on {numbers}, not on each of 1 to {len(claims)} once")
        return tuple(each.relation for each in sorted(verdicts, key=lambda each: each.n))

    asked_for = VERDICT_TOKENS * (len(claims) + 2)
    return await judge.ask(prompt, {**values, "claims": numbered(claims)}, read, asked_for)


def told(*sides: tuple[str, Sequence[str], Sequence[str]]) -> str:
    """The claims that do not follow, for people."""
    lacking = (
        (what, [claim for claim, relation in zip(claims, relations, strict=True) if relation != "entailed"])
        for what, claims, relations in sides
    )
    return "; ".join(f"{what}: {' | '.join(claims)}" for what, claims in lacking if claims)


async def side_by_side(*work: Coroutine[Any, Any, Result]) -> tuple[Result, ...]:
    """The results; when one fails, its error after all others have come to their end."""
    results = await asyncio.gather(*work, return_exceptions=True)
    for each in results:
        if isinstance(each, BaseException):
            raise each
    return tuple(each for each in results if not isinstance(each, BaseException))
