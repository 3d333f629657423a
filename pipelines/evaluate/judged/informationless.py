"""Whether an answer says anything of what was asked."""

from __future__ import annotations

from functools import partial

from pipelines.evaluate.dataset import Case
from pipelines.evaluate.judged.judge import Decided, Judge, parsed
from pipelines.evaluate.judged.material import asked
from pipelines.evaluate.judged.measure import Judgement
from pipelines.evaluate.measures import Observed

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

    async def of(self, case: Case, observed: Observed, judge: Judge) -> Judgement:
        """What failed is wrong either way. Raises: Unjudged, PagewireError."""
        if observed.failed:
            return Judgement({"informative": 0.0}, "it failed")
        found = _Informationless(reason="nothing was answered", informationless=True)
        if observed.answer.strip():
            values = {"question": asked(case), "answer": observed.answer}
            found = await judge.ask(self.prompts[0], values, partial(parsed, _Informationless), TOKENS)
        wanted = case.expect == "refuse"
        return Judgement({"informative": float(found.informationless == wanted)}, found.reason)
