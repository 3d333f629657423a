"""What labelling needs of the question log; the adapter and its in-memory sibling both fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, Self

from pipelines.runtime.errors import Permanent
from schemas.label import AnswerLabel
from schemas.outcome import Became, LoggedQuestion, SecondVerdict, Verdict

MAX_EARLIER = 10  # questions before one that are shown


class UnknownQuestion(Permanent):
    """The log has no such question, or its words are gone: there is nothing to label."""

    code = "unknown-question"


@dataclass(frozen=True)
class Labelled:
    """A question of the log, with what people say of its answer, the earliest first."""

    question: LoggedQuestion
    labels: tuple[AnswerLabel, ...] = ()
    settled: AnswerLabel | None = None

    def of(self, rater: str) -> AnswerLabel | None:
        """The rater's own label."""
        return next((label for label in self.labels if label.rater == rater), None)


@dataclass(frozen=True)
class Candidate:
    """A question that can be labelled: its words and its answer are kept."""

    request_id: str
    lang: str  # asked in
    became: Became
    disliked: bool
    raters: tuple[str, ...]  # who have labelled it


@dataclass(frozen=True)
class JudgedAnswer:
    """What a judge says of an answer of the log."""

    request_id: str
    lang: str  # asked in
    judge: str
    prompts: str  # fingerprints
    figures: Mapping[str, float]  # by name, of those that it has decided
    again: Mapping[str, float] = field(default_factory=dict)  # when it was asked once more

    @classmethod
    def of(cls, request_id: str, lang: str, verdict: Verdict) -> Self:
        """By its verdict."""
        again = _decided(verdict.again) if verdict.again is not None else {}
        return cls(request_id, lang, verdict.judge, verdict.prompts, _decided(verdict), again)


def _decided(verdict: Verdict | SecondVerdict) -> dict[str, float]:
    said = {"faithfulness": verdict.faithfulness, "context relevancy": verdict.context_relevancy}
    return {name: figure for name, figure in said.items() if figure is not None}


class LabelStore(Protocol):
    """Keeps labels with their questions (adapters.elastic.labels). All raise Retryable."""

    async def candidates(self, site: str, since: datetime, most: int) -> Sequence[Candidate]:
        """Questions asked since then that can be labelled, the newest first: no courtesies, nothing that failed."""
        ...

    async def of_site(self, site: str, most: int) -> Sequence[Labelled]:
        """Those with a label, the newest question first. A label is read at once."""
        ...

    async def judged(self, site: str, since: datetime, most: int) -> Sequence[JudgedAnswer]:
        """Of at most so many questions asked since then those that have a verdict, the newest question first."""
        ...

    async def get(self, site: str, request_id: str) -> Labelled | None:
        """One question, labelled or not. Of one whose conversation was deleted there are no labels."""
        ...

    async def earlier(self, question: LoggedQuestion) -> Sequence[str]:
        """What was asked before it in its conversation, the oldest first, at most `MAX_EARLIER`."""
        ...

    async def change(self, site: str, request_id: str, rule: Callable[[Labelled], Labelled]) -> Labelled:
        """Keep what the rule makes of the question's labels; it may be asked again, where others write as well.

        Raises:
            UnknownQuestion: it is not there, or was erased; nothing is written. What the rule raises.
        """
        ...
