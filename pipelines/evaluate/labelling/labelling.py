"""Labelling: who labels what, and what came of it. One per process.

the log ─▶ queue ─▶ put, by each of two raters ─▶ agreement, and what differs ─▶ settle ─▶ export
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from pipelines.evaluate.labelling.judged import judge_agreement
from pipelines.evaluate.labelling.labelled import given, labelable, settled, shown, state
from pipelines.evaluate.labelling.ports import Labelled, LabelStore, UnknownQuestion
from pipelines.evaluate.labelling.queue import RATERS, left, sample
from pipelines.evaluate.labelling.raters import agreement
from schemas.label import (
    AnswerLabel,
    JudgeAgreement,
    JudgeFigure,
    LabelAgreement,
    LabelledQuestion,
    LabelQueue,
    NewLabel,
)
from schemas.outcome import cited_pages

PERIOD = timedelta(days=90)  # in which questions are sampled
MOST_CANDIDATES = 5_000  # the newest of them: some 5 MB are read
MOST_LABELLED = 5_000  # questions with a label that are read: two raters' work of weeks


class Labelling:
    """`now`: the time that all gateways go by. All of it raises Retryable."""

    def __init__(self, store: LabelStore, now: Callable[[], datetime]) -> None:
        self._store = store
        self._now = now

    async def queue(self, site: str, rater: str) -> LabelQueue:
        """What the rater has to label."""
        found = await self._store.candidates(site, self._now() - PERIOD, MOST_CANDIDATES)
        sampled = sample(site, found)
        return LabelQueue(
            sample=len(sampled),
            yours=sum(rater in each.raters for each in sampled),
            both=sum(len(each.raters) >= RATERS for each in sampled),
            next=tuple(each.request_id for each in left(sampled, rater)),
        )

    async def get(self, site: str, request_id: str) -> Labelled:
        """Raises: UnknownQuestion."""
        found = await self._store.get(site, request_id)
        if found is None:
            raise UnknownQuestion(f"the log of site {site} has no question {request_id}")
        return found

    async def earlier(self, there: Labelled) -> tuple[str, ...]:
        """What was asked before it."""
        return tuple(await self._store.earlier(there.question))

    async def put(self, site: str, request_id: str, new: NewLabel, rater: str) -> Labelled:
        """Keep a rater's label, or change it. Raises: UnknownQuestion, LabelsStand."""
        return await self._store.change(site, request_id, given(self._label(new, rater)))

    async def settle(self, site: str, request_id: str, new: NewLabel, by: str) -> Labelled:
        """Say what counts. Raises: UnknownQuestion, NothingToSettle."""
        return await self._store.change(site, request_id, settled(self._label(new, by)))

    async def of_site(self, site: str) -> Sequence[Labelled]:
        """The newest question first."""
        return await self._store.of_site(site, MOST_LABELLED)

    async def agreement(self, site: str, named: Callable[[str], str] = str) -> LabelAgreement:
        """`named`: what a rater is called."""
        found = await self.of_site(site)
        pairs = await asyncio.to_thread(agreement, found)
        return LabelAgreement(
            pairs=tuple(each.model_copy(update={"one": named(each.one), "other": named(each.other)}) for each in pairs)
        )

    async def judge_agreement(self, site: str, figure: JudgeFigure, bar: float | None = None) -> JudgeAgreement:
        """How far the judge of the site's answers agrees with the labels that count."""
        judged = await self._store.judged(site, self._now() - PERIOD, MOST_CANDIDATES)
        return await asyncio.to_thread(judge_agreement, await self.of_site(site), judged, figure, bar)

    def _label(self, new: NewLabel, rater: str) -> AnswerLabel:
        return AnswerLabel.model_validate(new.model_dump() | {"rater": rater, "at": self._now()})


def told(
    there: Labelled, viewer: str, named: Callable[[str], str] = str, earlier: Sequence[str] = ()
) -> LabelledQuestion:
    """What a viewer is told of a question. `named`: what a rater is called."""
    question, visible = there.question, shown(there, viewer)
    outcome = question.outcome

    def under(label: AnswerLabel) -> AnswerLabel:
        return label.model_copy(update={"rater": named(label.rater)})

    return LabelledQuestion(
        request_id=question.request_id,
        asked_at=outcome.asked_at,
        lang=outcome.asked_in,
        earlier=tuple(earlier),
        question=outcome.question,
        answer=outcome.answer,
        became=outcome.became,
        cited=cited_pages(outcome) if labelable(there) else (),  # an answer from pages for some only is not kept
        state=state(there),
        labels=tuple(map(under, visible)),
        hidden=len(there.labels) - len(visible),
        settled=under(there.settled) if there.settled else None,
    )
