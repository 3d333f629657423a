"""Whether what was found helps to answer."""

from __future__ import annotations

from pipelines.evaluate.dataset import Case
from pipelines.evaluate.judged.judge import Decided, Judge, parsed
from pipelines.evaluate.judged.material import asked, fenced, readable
from pipelines.evaluate.judged.measure import Judgement
from pipelines.evaluate.measures import Observed

ENOUGH = 0.4  # share of the sources from which on more of them would be no better: answers need a few, not all
TOKENS = 200


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

    async def of(self, case: Case, observed: Observed, judge: Judge) -> Judgement:
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
