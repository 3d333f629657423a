"""Two runs' answers to the same question side by side: which serves better.

A judge may like what stands first. So it is asked in both orders, and an answer is better only if it is in both.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

from pipelines.evaluate.dataset import Case
from pipelines.evaluate.judged.claims import side_by_side
from pipelines.evaluate.judged.judge import Decided, Judge, parsed
from pipelines.evaluate.judged.material import asked, fenced
from pipelines.evaluate.judged.measure import Judgement
from pipelines.evaluate.measures import Observed
from pipelines.evaluate.run import Run

TOKENS = 200


class _Better(Decided):
    reason: str
    better: Literal["first", "second", "same"]


class Pairwise:
    """This run's answers against those of an earlier run.

    Args:
        live: the earlier run. Verdicts are told apart by when it was begun.
    """

    about = "1 where this run's answer is better, 0 where the earlier one's is, 1/2 where neither is in both orders"
    figures = ("preferred", "same in both orders")
    prompts = ("pairwise",)

    def __init__(self, live: Run) -> None:
        self.name = f"pairwise {live.head.begun:%Y%m%dT%H%M%S}"
        self._live = live

    def applies(self, case: Case, observed: Observed) -> bool:
        return case.id in self._live.observed

    async def of(self, case: Case, observed: Observed, judge: Judge) -> Judgement:
        """Raises: Unjudged, PagewireError."""
        ours, theirs = observed.answer.strip(), self._live.observed[case.id].answer.strip()
        if ours == theirs:
            return Judgement({"preferred": 0.5}, "the same answer")
        if not ours or not theirs:
            return Judgement({"preferred": float(bool(ours))}, "one of them failed")
        forth, back = await side_by_side(
            self._better(case, ours, theirs, judge), self._better(case, theirs, ours, judge)
        )
        return weighed(forth.better, back.better, forth.reason)

    async def _better(self, case: Case, first: str, second: str, judge: Judge) -> _Better:
        references = fenced("right-answer", case.answers, judge.fence)
        values = {"question": asked(case), "references": references, "first": first, "second": second}
        return await judge.ask(self.prompts[0], values, partial(parsed, _Better), TOKENS)


def weighed(forth: str, back: str, reason: str) -> Judgement:
    """The figures, from what is better with ours first, and with ours second."""
    swapped = {"first": "second", "second": "first", "same": "same"}
    if forth != swapped[back]:
        return Judgement({"preferred": 0.5, "same in both orders": 0.0}, f"{forth}, and swapped {back}: {reason}")
    preferred = {"first": 1.0, "second": 0.0, "same": 0.5}[forth]
    return Judgement({"preferred": preferred, "same in both orders": 1.0}, reason)
