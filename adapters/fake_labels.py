"""In-memory sibling of adapters.elastic.labels; it passes the same contract tests."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from adapters.fake_outcomes import FakeOutcomes
from pipelines.evaluate.labelling.ports import MAX_EARLIER, Candidate, JudgedAnswer, Labelled, UnknownQuestion
from schemas.outcome import LoggedQuestion

ALL_TIME = datetime.max.replace(tzinfo=UTC)


class FakeLabels:
    """Keeps labels with the questions of a FakeOutcomes."""

    def __init__(self, outcomes: FakeOutcomes) -> None:
        self._log = outcomes

    async def candidates(self, site: str, since: datetime, most: int) -> list[Candidate]:
        found = []
        for each in await self._log.asked(site, since, ALL_TIME, most):
            kept = self._log.kept[site, each.request_id]
            if each.became != "failed" and each.question and kept.outcome and kept.outcome.answer:
                raters = tuple(label.rater for label in kept.labels)
                found.append(Candidate(each.request_id, each.lang, each.became, each.rating == "down", raters))
        return found

    async def of_site(self, site: str, most: int) -> list[Labelled]:
        ids = [id for (of, id), kept in self._log.kept.items() if of == site and kept.labels]
        found = [one for id in ids if (one := await self.get(site, id))]
        return sorted(found, key=lambda one: (-one.question.outcome.asked_at.timestamp(), one.question.request_id))[
            :most
        ]

    async def judged(self, site: str, since: datetime, most: int) -> list[JudgedAnswer]:
        found = await self._log.asked(site, since, ALL_TIME, most)
        verdicts = ((each, self._log.kept[site, each.request_id].verdict) for each in found)
        return [JudgedAnswer.of(each.request_id, each.lang, verdict) for each, verdict in verdicts if verdict]

    async def get(self, site: str, request_id: str) -> Labelled | None:
        question = await self._log.get(site, request_id)
        if question is None:
            return None
        kept = self._log.kept[site, request_id]
        return Labelled(question, kept.labels, kept.settled)

    async def earlier(self, question: LoggedQuestion) -> list[str]:
        of_it = [
            kept.outcome
            for kept in self._log.kept.values()
            if kept.outcome and (kept.site, kept.conversation) == (question.site, question.conversation)
        ]
        before = [one for one in of_it if one.asked_at < question.outcome.asked_at and one.question]
        return [one.question or "" for one in sorted(before, key=lambda one: one.asked_at)][-MAX_EARLIER:]

    async def change(self, site: str, request_id: str, rule: Callable[[Labelled], Labelled]) -> Labelled:
        found = await self.get(site, request_id)
        if found is None or found.question.erased:
            raise UnknownQuestion(f"the log of site {site} has no question {request_id}")
        made, kept = rule(found), self._log.kept[site, request_id]
        kept.labels, kept.settled = made.labels, made.settled
        return made
