"""Claims: an answer taken apart, and each part held against a reference answer or against the sources.

answer ─▶ ClaimExtractor ─▶ claims ─▶ EntailmentAnalyzer ◀─ reference answer ─▶ precision ┐
reference ─▶ ClaimExtractor ─▶ claims ─▶ EntailmentAnalyzer ◀─ answer ─▶ recall ──────────┴▶ F1      (ClaimsFC)
answer ─▶ ClaimExtractor ─▶ claims ─▶ held against the sources ─▶ share that they bear out           (Faithfulness)
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from functools import partial
from typing import Annotated, Literal, TypeVar

from pydantic import Field, StringConstraints

from pipelines.evaluate.dataset import Case
from pipelines.evaluate.judged.judge import Decided, EvaluationJudge, parsed
from pipelines.evaluate.judged.measure import Judgement, asked, fenced, numbered, readable, said
from pipelines.evaluate.measures import Observed

MOST_CLAIMS = 60  # of one text; who finds more has not understood
MOST_REFERENCES = 3  # of a case; each costs three calls
CLAIMS_TOKENS = 2_000
VERDICT_TOKENS = 24  # for each claim

Relation = Literal["entailed", "contradicted", "neither"]
_NEITHER: Relation = "neither"
Claim = Annotated[str, StringConstraints(min_length=1)]
First = TypeVar("First")
Second = TypeVar("Second")


class _Claims(Decided):
    claims: Annotated[tuple[Claim, ...], Field(max_length=MOST_CLAIMS)]


class _Verdict(Decided):
    n: int
    relation: Relation


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
    """What follows from a text for claims."""

    prompt = "entailment"

    async def relations(
        self, question: str, text: str, claims: Sequence[str], judge: EvaluationJudge
    ) -> tuple[Relation, ...]:
        """One for each claim. Raises: Unjudged, PagewireError."""
        if not text.strip():
            return tuple(_NEITHER for _ in claims)
        return await related(judge, self.prompt, {"question": question, "text": text}, claims)

    async def both(
        self, question: str, text: str, claims: Sequence[str], other: str, others: Sequence[str], judge: EvaluationJudge
    ) -> tuple[tuple[Relation, ...], tuple[Relation, ...]]:
        """The claims of each text held against the other one, side by side."""
        return await side_by_side(
            self.relations(question, other, claims, judge), self.relations(question, text, others, judge)
        )


class ClaimsFC:
    """Factual correctness: the claims of the answer against those of a reference answer."""

    name = "claims"
    about = "claims of the answer that a reference answer bears out, and the other way round"
    figures = ("claims precision", "claims recall", "claims F1")
    prompts = (ClaimExtractor.prompt, EntailmentAnalyzer.prompt)

    def __init__(self) -> None:
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
        forth, back = await self._analyzer.both(question, text, ours, reference, theirs, judge)
        return Judgement(
            precision_recall(forth, back),
            told(("not in the reference", ours, forth), ("not in the answer", theirs, back)),
        )


class Faithfulness:
    """Whether the answer says what its sources say."""

    name = "faithfulness"
    about = "share of the answer's claims that its sources bear out"
    figures = ("faithfulness",)
    prompts = (ClaimExtractor.prompt, "faithfulness")

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


def precision_recall(forth: Sequence[Relation], back: Sequence[Relation]) -> dict[str, float]:
    """Figures of claims: of the answer's what the reference bears out, of the reference's what the answer does.

    Args:
        forth: of the answer's claims; without any there is no precision. back: of the reference's, at least one.
    """
    recall = back.count("entailed") / len(back)
    if not forth:
        return {"claims recall": recall, "claims F1": 0.0}
    precision = forth.count("entailed") / len(forth)
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return {"claims precision": precision, "claims recall": recall, "claims F1": f1}


async def related(
    judge: EvaluationJudge, prompt: str, values: dict[str, str], claims: Sequence[str]
) -> tuple[Relation, ...]:
    """One relation for each claim; an answer that leaves one out is not readable."""
    if not claims:
        return ()

    def read(text: str) -> tuple[Relation, ...]:
        verdicts = parsed(_Verdicts, text).verdicts
        return in_order({each.n: each.relation for each in verdicts}, [each.n for each in verdicts], len(claims))

    asked_for = VERDICT_TOKENS * (len(claims) + 2)
    return await judge.ask(prompt, {**values, "claims": numbered(claims)}, read, asked_for)


def in_order(found: dict[int, First], numbers: Sequence[int], count: int) -> tuple[First, ...]:
    """What was said of each of so many. Raises: ValueError: of one nothing, or twice."""
    if sorted(numbers) != list(range(1, count + 1)):
        raise ValueError(f"verdicts on {sorted(numbers)}, not on each of 1 to {count} once")
    return tuple(found[n] for n in range(1, count + 1))


def told(*sides: tuple[str, Sequence[str], Sequence[Relation]]) -> str:
    """The claims that do not follow, for people."""
    lacking = (
        (what, [claim for claim, relation in zip(claims, relations, strict=True) if relation != "entailed"])
        for what, claims, relations in sides
    )
    return "; ".join(f"{what}: {' | '.join(claims)}" for what, claims in lacking if claims)


async def side_by_side(first: Awaitable[First], second: Awaitable[Second]) -> tuple[First, Second]:
    """Both; when one fails, after the other has come to its end."""
    one, other = await asyncio.gather(first, second, return_exceptions=True)
    if isinstance(one, BaseException):
        raise one
    if isinstance(other, BaseException):
        raise other
    return one, other
