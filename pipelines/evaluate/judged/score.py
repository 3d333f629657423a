"""Marks from 0 to 5 for an answer, compared with reference answers."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from pydantic import Field

from pipelines.evaluate.dataset import Case
from pipelines.evaluate.judged.judge import Decided, Judge, parsed
from pipelines.evaluate.judged.material import asked, fenced
from pipelines.evaluate.judged.measure import Judgement, said
from pipelines.evaluate.measures import Observed

BEST = 5.0
RIGHT = 4.0  # from here on it is right
TOKENS = 400


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

    async def of(self, case: Case, observed: Observed, judge: Judge) -> Judgement:
        """Raises: Unjudged, PagewireError."""
        text = said(observed)
        if not text.strip():
            return marked(0.0, "nothing was answered")
        references = fenced("right-answer", case.answers, judge.fence)
        values = {"question": asked(case), "references": references, "answer": text}
        found = await judge.ask(self.prompts[0], values, partial(parsed, _Score), TOKENS)
        return marked(found.score, found.reason)


def marked(score: float, reason: str) -> Judgement:
    """The figures of a mark between 0 and 5."""
    return Judgement({"judge score": score / BEST, "judge right": float(score >= RIGHT)}, reason)
