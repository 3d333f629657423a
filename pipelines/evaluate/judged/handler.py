"""The judge stage: sample, read what the answer was made from, have it judged, say the verdict.

query.outcomes ─▶ chosen? ─▶ not forgotten? ─▶ within the day's budget? ─▶ judge ─▶ query.verdicts ─▶ log
                    │ no        │ yes             │ no, or judged already      ▲
                    ▼           ▼                 ▼                            └─ the answer's sources: answer.events
                  nothing    nothing           nothing

It is off the way of an answer: no visitor waits for it. A model that is away pauses the stage as any service
does; where messages that ask nothing of it go through meanwhile, its own are tried again by themselves, for as long as
it takes. What a model refuses to judge, or answers unreadably, gets a verdict that says so and is not tried again.

Of a share it is asked twice, about the same words: how often it then agrees with itself is what its figures can tell.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import structlog

from pipelines.evaluate.dataset import Case
from pipelines.evaluate.judged.claims import Faithfulness
from pipelines.evaluate.judged.judge import FIRST_PAUSE, EvaluationJudge, JudgeModel, JudgingBudget, Written
from pipelines.evaluate.judged.measure import JudgedMeasure, fingerprint
from pipelines.evaluate.judged.registry import ContextRelevancy
from pipelines.evaluate.judged.sampling import CLOCK_SKEW, SampleAllowance, chosen, chosen_again, readable
from pipelines.evaluate.measures import Observed, passages_of
from pipelines.runtime.bus import LogReader
from pipelines.runtime.errors import Kind, PagewireError
from pipelines.runtime.metrics import JUDGED_ANSWERS, JUDGED_FIGURES
from pipelines.runtime.record import Record
from pipelines.runtime.settings import Site
from pipelines.runtime.stage import Handler, Sender
from pipelines.runtime.try_limit import TryQueue
from prompts.loader import ChatMessage, fence
from schemas.answer import Answered, AnswerEvent
from schemas.base import WireError
from schemas.outcome import Outcome, OutcomeEvent, SecondVerdict, Verdict, VerdictEvent
from schemas.query import MAX_QUESTION
from schemas.topics import ANSWERS, VERDICTS


class InLine:
    """One per process. What waits in line is not cut off for it while the line moves."""

    def __init__(self, model: JudgeModel) -> None:
        self._model = model
        self._line = TryQueue()
        self._turn = asyncio.Lock()

    async def complete(self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None) -> Written:
        """Raises: as the model does."""
        with self._line.place():
            async with self._turn:
                return await self._model.complete(messages, max_tokens=max_tokens)


logger = structlog.get_logger(__name__)

# Three calls, each asked again once where it is unreadable, and tried three times while the model is busy.
CALLS = 18  # for one answer
# After a question: its deadline is some 90 s, a worker that takes over says so soon after it.
ANSWERED_WITHIN = timedelta(hours=1)
TOKENS = 100_000  # the same; sources are 6,000 at most
MEASURES: tuple[JudgedMeasure, ...] = (Faithfulness(), ContextRelevancy())
# Share of the judged answers that are judged twice, to see how often the judge agrees with itself.
AGAIN = 0.1
OUTCOMES = ("judged", "unjudged", "over-budget", "gone")  # of answers that were chosen


@dataclass(frozen=True)
class Named:
    """A model that judges."""

    name: str
    model: JudgeModel


def judge_handler(
    sites: Mapping[str, Site],
    judge: Named | None,
    answers: LogReader,
    forgotten: Callable[[str, str], Awaitable[bool]],
    allowance: SampleAllowance,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    pause: float = FIRST_PAUSE,
    again: float = AGAIN,
) -> Handler:
    """Some of what visitors are answered is judged.

    Args:
        judge: None: no site wants any judged.
        pause: seconds before a call is tried again.
        again: share of the judged answers that are judged twice.
    """

    async def handle(record: Record, sender: Sender) -> None:
        event = OutcomeEvent.decode(record.value)
        outcome, site = event.event, sites.get(event.site)
        if judge is None or site is None or not isinstance(outcome, Outcome):
            return
        if not chosen(event, site.judging.share) or not readable(outcome):
            return
        if await forgotten(event.site, event.request_id):
            return
        twice = chosen_again(event, again)
        admitted = await allowance.admit(event, outcome.asked_at, site.judging.daily, twice=twice)
        if admitted not in ("once", "twice"):
            if admitted == "over-budget":
                JUDGED_ANSWERS.labels(event.site, "over-budget").inc()
            return
        try:
            end = await _answered(record, event, outcome, answers, now())
            if end is None:
                JUDGED_ANSWERS.labels(event.site, "gone").inc()
                return
            verdict = await _judged(event, outcome, end, judge, now, pause)
            if admitted == "twice":
                with suppress(PagewireError):  # the first one stands, whatever became of the second
                    second = await _judged(event, outcome, end, judge, now, pause)
                    verdict = verdict.model_copy(update={"again": _second(second)})
            said = VerdictEvent(
                site=event.site,
                request_id=event.request_id,
                conversation=event.conversation,
                asked_at=outcome.asked_at,
                verdict=verdict,
            )
            await sender.send(VERDICTS, said.key, said)
        finally:
            allowance.left(event, outcome.asked_at)
        _count(event.site, verdict)

    return handle


async def _answered(
    record: Record, event: OutcomeEvent, outcome: Outcome, answers: LogReader, now: datetime
) -> Answered | None:
    """The answer with the texts of its sources; None: its events are deleted by now. Raises: Retryable."""
    if outcome.asked_at < now - timedelta(milliseconds=ANSWERS.retention_ms or 0):
        return None
    skew = round(CLOCK_SKEW.total_seconds() * 1000)
    asked = round(outcome.asked_at.timestamp() * 1000)
    # The outcome was said when the last event was out: what was written later is none of its answer's. One that was put
    # back says so too late: then by when its answer must have been there.
    last = asked + round(ANSWERED_WITHIN.total_seconds() * 1000)
    until = min(record.timestamp_ms or last, last) + skew
    records = await answers.of_key(event.request_id, asked - skew, until)
    ends = []
    for each in records:
        with suppress(WireError):  # without a readable end it counts as gone
            said = AnswerEvent.decode(each.value)
            if isinstance(said.event, Answered):
                ends.append((said.attempt, said.event))
    return max(ends, key=lambda end: end[0])[1] if ends else None


async def _judged(
    event: OutcomeEvent, outcome: Outcome, end: Answered, named: Named, now: Callable[[], datetime], pause: float
) -> Verdict:
    """Raises: PagewireError: that is no fault of this answer."""
    judge = EvaluationJudge(named.model, named.name, JudgingBudget(CALLS, TOKENS), fence(event.request_id), pause)
    case, observed = material(event, outcome, end)
    figures: dict[str, float] = {}
    unjudged = None
    for measure in MEASURES:
        if not measure.applies(case, observed):
            continue
        try:
            figures |= (await measure.of(case, observed, judge)).figures
        except PagewireError as err:
            if err.kind is not Kind.RECORD:
                raise
            unjudged = unjudged or err.code
    return Verdict(
        judged_at=now(),
        judge=named.name,
        prompts=" ".join(fingerprint(measure) for measure in MEASURES),
        faithfulness=figures.get("faithfulness"),
        context_relevancy=figures.get("context relevancy"),
        unjudged=unjudged,
    )


def _second(verdict: Verdict) -> SecondVerdict:
    return SecondVerdict(faithfulness=verdict.faithfulness, context_relevancy=verdict.context_relevancy)


def material(event: OutcomeEvent, outcome: Outcome, end: Answered) -> tuple[Case, Observed]:
    """What the judge reads: question and answer as the log keeps them, masked, and the texts of the sources.

    An answer that was made for access groups has no text in the log, and comes not as far as this: so sources are what
    everybody may read.
    """
    asked = (outcome.question or "", outcome.rephrased or "")
    *before, question = dict.fromkeys(text.strip()[:MAX_QUESTION] for text in asked if text.strip())
    case = Case(id=event.request_id, question=question, history=tuple(before), lang=outcome.asked_in)
    observed = Observed(
        case=event.request_id,
        at=outcome.asked_at,
        answer=outcome.answer or "",
        grade=outcome.grade,
        sources=passages_of(end.sources),
        ms=0.0,
    )
    return case, observed


def _count(site: str, verdict: Verdict) -> None:
    JUDGED_ANSWERS.labels(site, "unjudged" if verdict.unjudged else "judged").inc()
    figures = {"faithfulness": verdict.faithfulness, "context relevancy": verdict.context_relevancy}
    for name, figure in figures.items():
        if figure is not None:
            JUDGED_FIGURES.labels(site, name).observe(figure)
    logger.info("judged", site=site, judge=verdict.judge, unjudged=verdict.unjudged)


def begin_counting(sites: Mapping[str, Site]) -> None:
    """Say 0 of what has not happened yet: an increase is seen only where there was a 0 before it."""
    for name, site in sites.items():
        if site.judging.share:
            for outcome in OUTCOMES:
                JUDGED_ANSWERS.labels(name, outcome)
            for figure in (figure for measure in MEASURES for figure in measure.figures):
                JUDGED_FIGURES.labels(name, figure)
