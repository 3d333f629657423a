"""In-memory sibling of adapters.elastic.outcomes; it passes the same contract tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from pipelines.query.log.frequent import AnsweredQuestion
from pipelines.query.log.ports import AskedHit, BadCursor, GroupableQuestion
from pipelines.runtime.errors import PagewireError
from schemas.conversation import Feedback
from schemas.outcome import (
    Forgotten,
    LoggedQuestion,
    Outcome,
    OutcomeEvent,
    QuestionCounts,
    QuestionFilter,
    QuestionList,
    QuestionRow,
    Rated,
    Verdict,
    VerdictEvent,
    cited_pages,
)
from text.words import words


@dataclass
class _Kept:
    site: str
    noted_at: datetime
    conversation: str = ""
    outcome: Outcome | None = None
    feedback: Feedback | None = None
    verdict: Verdict | None = None
    forgotten: bool = False


@dataclass
class FakeOutcomes:
    """Keeps outcomes of questions in a dict. Every call raises `error`, where it is set."""

    error: PagewireError | None = None
    kept: dict[tuple[str, str], _Kept] = field(default_factory=dict)

    async def put(self, event: OutcomeEvent) -> None:
        self._fail()
        match event.event:
            case Outcome() as outcome:
                kept = self._of(event.site, event.request_id, outcome.asked_at)
                if kept.outcome and not (outcome.calls or outcome.doubted):  # said again by a worker that has neither
                    earlier = {"calls": kept.outcome.calls, "doubted": kept.outcome.doubted}
                    outcome = outcome.model_copy(update=earlier)
                kept.outcome, kept.conversation = outcome, event.conversation
            case Rated(feedback=feedback):
                self._of(event.site, event.request_id, feedback.at).feedback = feedback
            case Forgotten(requests=requests, at=at):
                for request in requests:
                    self._of(event.site, request, at).forgotten = True
                for kept in self.kept.values():
                    same = (kept.site, kept.conversation) == (event.site, event.conversation)
                    kept.forgotten = kept.forgotten or same
        for kept in self.kept.values():
            if kept.forgotten:
                _erase(kept)

    async def put_verdict(self, event: VerdictEvent) -> None:
        self._fail()
        self._of(event.site, event.request_id, event.verdict.judged_at).verdict = event.verdict

    async def forgotten(self, site: str, request_id: str) -> bool:
        self._fail()
        kept = self.kept.get((site, request_id))
        return kept is not None and kept.forgotten

    async def expire(self, before: Mapping[str, datetime]) -> Mapping[str, int]:
        self._fail()
        old = [
            place
            for place, kept in self.kept.items()
            if kept.site in before and (kept.outcome.asked_at if kept.outcome else kept.noted_at) < before[kept.site]
        ]
        for place in old:
            del self.kept[place]
        return Counter(site for site, _ in old)

    async def find(self, site: str, wanted: QuestionFilter, limit: int, after: str | None = None) -> QuestionList:
        self._fail()
        every = [one for of, id in self.kept if of == site and (one := await self.get(site, id))]
        fitting = [one for one in every if _fits(one, wanted)]
        fitting.sort(key=lambda one: (-one.outcome.asked_at.timestamp(), one.request_id))
        begin = 0
        if after is not None:
            ids = [one.request_id for one in fitting]
            if after not in ids:
                raise BadCursor("`after` must be the `next` of an earlier list")
            begin = ids.index(after) + 1
        listed = fitting[begin : begin + limit]
        became = dict(Counter(one.outcome.became for one in fitting))
        ratings = Counter(one.feedback.rating for one in fitting if one.feedback)
        return QuestionList(
            counts=QuestionCounts(asked=len(fitting), liked=ratings["up"], disliked=ratings["down"], **became),
            questions=tuple(QuestionRow.of(one) for one in listed),
            next=listed[-1].request_id if listed and begin + limit < len(fitting) else None,
        )

    async def get(self, site: str, request_id: str) -> LoggedQuestion | None:
        self._fail()
        kept = self.kept.get((site, request_id))
        if kept is None or kept.outcome is None:
            return None
        return LoggedQuestion(
            request_id=request_id,
            site=site,
            conversation=kept.conversation,
            outcome=kept.outcome.model_copy(update={"vector": None}),
            feedback=kept.feedback,
            verdict=kept.verdict,
            erased=kept.forgotten,
        )

    async def asked(self, site: str, since: datetime, until: datetime, most: int) -> list[GroupableQuestion]:
        self._fail()
        found = [
            _asked(id, kept.outcome, kept.feedback)
            for (of, id), kept in self.kept.items()
            if of == site and kept.outcome is not None and kept.outcome.became != "courtesy"
        ]
        fitting = [one for one in found if since <= one.asked_at < until]
        return sorted(fitting, key=lambda one: (-one.asked_at.timestamp(), one.request_id))[:most]

    async def answered(self, site: str, since: datetime, most: int) -> list[AnsweredQuestion]:
        self._fail()
        every = [one for (of, _), one in self.kept.items() if of == site and one.outcome is not None]
        found = [
            (one.outcome.asked_at, _answered(one.outcome, one.outcome.question, one.feedback))
            for one in every
            if one.outcome is not None and one.outcome.became == "answered" and one.outcome.question is not None
        ]
        newest = sorted((one for one in found if one[0] >= since), key=lambda one: one[0], reverse=True)
        return [one for _, one in newest[:most]]

    async def corrections_used(self, site: str) -> dict[str, int]:
        self._fail()
        kept = [one.outcome for (of, _), one in self.kept.items() if of == site and one.outcome is not None]
        return Counter(id for outcome in kept for id in outcome.corrections)

    def _of(self, site: str, request_id: str, at: datetime) -> _Kept:
        return self.kept.setdefault((site, request_id), _Kept(site, at))

    def _fail(self) -> None:
        if self.error is not None:
            raise self.error


def _erase(kept: _Kept) -> None:
    if kept.outcome is not None:
        kept.outcome = kept.outcome.wordless
    if kept.feedback is not None:
        kept.feedback = kept.feedback.model_copy(update={"comment": None})


def _asked(id: str, outcome: Outcome, feedback: Feedback | None) -> GroupableQuestion:
    return GroupableQuestion(
        request_id=id,
        asked_at=outcome.asked_at,
        lang=outcome.asked_in,
        question=outcome.question,
        text=outcome.rephrased or outcome.question,
        became=outcome.became,
        grade=outcome.grade,
        left_out=outcome.left_out,
        corrected=outcome.corrected is not None,
        rating=feedback.rating if feedback else None,
        hits=tuple(AskedHit(hit.page_id, hit.lang, hit.title, hit.url, hit.cosine, hit.cited) for hit in outcome.hits),
        restricted=outcome.restricted,
        vector=outcome.vector,
    )


def _answered(outcome: Outcome, question: str, feedback: Feedback | None) -> AnsweredQuestion:
    return AnsweredQuestion(
        question=question,
        lang=outcome.asked_in,
        asker=outcome.asker,
        pages=frozenset((hit.page_id, hit.lang) for hit in outcome.hits if hit.cited),
        restricted=outcome.restricted,
        doubtful=bool((feedback and feedback.rating == "down") or outcome.stopped or outcome.left_out),
    )


def _fits(one: LoggedQuestion, wanted: QuestionFilter) -> bool:
    outcome, rating = one.outcome, one.feedback.rating if one.feedback else None
    return (
        (wanted.since is None or outcome.asked_at >= wanted.since)
        and (wanted.until is None or outcome.asked_at < wanted.until)
        and wanted.lang in (None, outcome.asked_in, outcome.lang)
        and wanted.became in (None, outcome.became)
        and (wanted.feedback is None or (rating is not None and wanted.feedback in ("any", rating)))
        and (wanted.page is None or wanted.page in cited_pages(outcome))
        and (not wanted.text or _says(one, wanted.text))
    )


def _says(one: LoggedQuestion, text: str) -> bool:
    """Whether the question has all words of the text. The last word may be a prefix."""
    *whole, last = words(text) or [""]
    for field_text in (one.outcome.question, one.outcome.rephrased, one.feedback.comment if one.feedback else None):
        said = words(field_text or "")
        if set(whole) <= set(said) and any(word.startswith(last) for word in said):
            return True
    return False
