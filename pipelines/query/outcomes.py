"""Outcomes: the outcome of a question is sent after the last event of its answer.

answer.events: done ─▶ Outcomes.send ─▶ query.outcomes ─▶ log

No visitor waits for an outcome, and none is lost: the question's message counts as done once the broker has the
outcome. If a worker dies after the answer and before the outcome, the next worker finds the answer in the log of events
and sends the same outcome (pipelines.query.publish.begin). An outcome may be sent twice, with the same id.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, get_args

from pipelines.query.live.site_privacy import SitePrivacy
from pipelines.query.masks import Masks
from pipelines.query.model_calls import AnswerRecord, bounded
from pipelines.query.publish import Published
from pipelines.query.settings import QuerySettings
from pipelines.runtime import tracing
from pipelines.runtime.metrics import ANSWER_SECONDS, ANSWERS, FIRST_WORD_SECONDS
from pipelines.runtime.stage import Sender
from schemas.answer import STEP_CHARS, Answered, Failed
from schemas.outcome import Became, Outcome, OutcomeEvent, OutcomeSource, ToolRun
from schemas.query import ModelCall, Question, Rephrased, Retrieved
from schemas.topics import OUTCOMES
from text.language import language_of
from text.sentences import cut

StageInput = Question | Rephrased | Retrieved  # the message of a query stage, with the results of the stages before
StageInputType = type[Question] | type[Rephrased] | type[Retrieved]

ANSWER_CHARS = 8_000  # characters of an answer to keep
MOST_DOUBTED = 40  # doubted sentences of an answer to keep
HALF = 40  # characters at the end of a cut text, where half a number or address may be left


class Outcomes:
    """Sends outcomes for sites that log questions, and counts answers for Prometheus. One per stage."""

    def __init__(self, settings: QuerySettings, privacy: SitePrivacy | None = None) -> None:
        self._label = settings.label
        # Prometheus sees the first failed answer as an increase only if the counter existed with 0 before.
        for site in settings.labels:
            for result in get_args(Became):
                ANSWERS.labels(site, result)
        self._masks = Masks(settings.sites, privacy)

    async def send(
        self,
        known: StageInput,
        published: Published,
        sender: Sender,
        *,
        again: bool = False,
        made: AnswerRecord | None = None,
    ) -> None:
        """Send the outcome of a question.

        Args:
            made: model calls and doubts of the answer; None where this worker has not written it.
            again: an earlier try has ended the answer and counted it.

        Raises: Retryable: the broker has not confirmed it.
        """
        request = question_of(known)
        if isinstance(published.end, Answered) and not isinstance(known, Retrieved):
            return  # another worker has answered it; its answer stage sends the outcome
        if not again:
            _count(known, published, self._label)
        if request.logged_as is None or published.end is None or not self._masks.logs(request.site):
            return
        # In a thread, since masking searches long texts for the phone numbers of many regions.
        event = await asyncio.to_thread(self._event, known, published.end, published.first_word_at, request.logged_as)
        # On a second try this worker has not all model calls; the log may already have them.
        if not again and not request.groups and self._masks.logs_prompts(request.site):
            event = await asyncio.to_thread(self._explained, event, known, published.end, made or AnswerRecord())
        await sender.send(OUTCOMES, event.key, event)

    def _event(
        self, known: StageInput, end: Answered | Failed, first_word_at: datetime | None, logged_as: str
    ) -> OutcomeEvent:
        request = question_of(known)
        whole = outcome(known, end, first_word_at)
        words = {name: self._masks.kept(request.site, getattr(whole, name)) for name in ("question", "rephrased")}
        if request.groups and request.history:
            words["rephrased"] = None  # it may repeat earlier answers, which only the groups may read
        # A vector reveals its text (Morris et al. 2023, "Text Embeddings Reveal (Almost) As Much As Text"), so the
        # vector of a masked or dropped text is dropped too.
        vector = whole.vector if whole.rephrased is not None and words["rephrased"] == whole.rephrased else None
        sources = end.sources if isinstance(end, Answered) else ()
        # Only pages are public: the result of a tool repeats the visitor's input.
        public = [source.text for source in sources if source.cited and source.kind == "page"]
        # Readers of the log may lack the groups of this answer.
        answer = None if request.groups else self._masks.kept(request.site, whole.answer, public)
        runs = tuple(self._masked(request.site, run, public) for run in whole.tool_runs if answer is not None)
        return OutcomeEvent(
            site=request.site,
            request_id=request.request_id,
            conversation=logged_as,
            event=whole.model_copy(update={**words, "answer": answer, "tool_runs": runs, "vector": vector}),
        )

    def _masked(self, site: str, run: ToolRun, public: Iterable[str]) -> ToolRun:
        kept = {name: self._masks.kept(site, _whole(getattr(run, name)), public) or "" for name in ("call", "said")}
        return run.model_copy(update=kept)

    def _explained(
        self, event: OutcomeEvent, known: StageInput, end: Answered | Failed, made: AnswerRecord
    ) -> OutcomeEvent:
        """The event with model calls and doubted sentences, masked except for texts of the pages."""
        first = () if isinstance(known, Question) else known.calls
        sources = end.sources if isinstance(end, Answered) else known.sources if isinstance(known, Retrieved) else ()
        public = [source.text for source in sources if source.kind == "page"]

        def kept(text: str) -> str:
            return self._masks.kept(event.site, text, public) or ""

        def masked(call: ModelCall) -> ModelCall:
            messages = tuple(one.model_copy(update={"text": kept(one.text)}) for one in call.messages)
            return call.model_copy(update={"messages": messages, "reply": kept(call.reply)})

        calls = tuple(masked(call) for call in (*first, *bounded(made.calls)))
        doubted = tuple(
            each.model_copy(update={"sentence": kept(each.sentence), "said": kept(each.said)})
            for each in made.doubted[:MOST_DOUBTED]
        )
        return event.model_copy(update={"event": event.event.model_copy(update={"calls": calls, "doubted": doubted})})


def _count(known: StageInput, published: Published, label: Callable[[str], str]) -> None:
    """Count the answer for Prometheus, whether it is logged or not. Trials are not counted."""
    request = question_of(known)
    if published.end is None or request.trial is not None:
        return
    # The gateway's clock may run ahead of this worker's: no negative times.
    spent = max(0.0, (datetime.now(UTC) - request.asked_at).total_seconds())
    trace, result = tracing.exemplar(), became(known if isinstance(known, Retrieved) else None, published.end)
    ANSWERS.labels(label(request.site), result).inc(exemplar=trace)
    ANSWER_SECONDS.labels(result).observe(spent, trace)
    if published.first_word_at is not None:
        FIRST_WORD_SECONDS.observe(max(0.0, (published.first_word_at - request.asked_at).total_seconds()), trace)


def question_of(known: StageInput) -> Question:
    return known if isinstance(known, Question) else known.request


def outcome(known: StageInput, end: Answered | Failed, first_word_at: datetime | None) -> Outcome:
    """The outcome of a question, with unmasked words."""
    request = question_of(known)
    rephrased = None if isinstance(known, Question) else known
    retrieved = known if isinstance(known, Retrieved) else None
    answered = end if isinstance(end, Answered) else None
    first = (first_word_at - request.asked_at).total_seconds() * 1000 if first_word_at else None
    sources = answered.sources if answered else retrieved.sources if retrieved else ()
    timings = answered.timings_ms if answered else rephrased.timings_ms if rephrased else {}
    return Outcome(
        asked_at=request.asked_at,
        asked_in=language_of(request.question, (request.lang,)),
        lang=request.lang,
        question=request.question,
        rephrased=rephrased.question if rephrased else None,
        became=became(retrieved, end),
        mode=rephrased.mode if rephrased else None,
        courtesy=rephrased.courtesy if rephrased else None,
        grade=retrieved.grade if retrieved else None,
        gate=retrieved.gate if retrieved else None,
        sure=retrieved.sure if retrieved else None,
        hits=tuple(OutcomeSource.model_validate(s, from_attributes=True) for s in sources if s.kind == "page"),
        restricted=bool(request.groups),
        via=request.via,
        client=request.client,
        asker=request.asker,
        corrections=retrieved.corrected.ids if retrieved and retrieved.corrected else (),
        corrected=retrieved.corrected.kind if retrieved and retrieved.corrected else None,
        tools=tuple(dict.fromkeys(each.page_id for each in sources if each.kind == "tool" and each.cited)),
        tool_runs=tuple(
            ToolRun(call=step.asked, said=step.said, ms=max(0.0, step.ms))
            for step in (answered.trace if answered else ())
            if step.kind == "tool"
        ),
        timings_ms=timings,
        first_token_ms=max(0.0, first) if first is not None else None,  # two machines' clocks may differ
        vector=retrieved.vector if retrieved else None,
        **(_of_answer(end) if isinstance(end, Answered) else {"failed": end.code}),
    )


def _whole(text: str) -> str:
    """A text of the trace without its last words, where it is cut: half a number would not be masked."""
    cut_short = len(text) >= STEP_CHARS and text.endswith("…")
    return f"{cut(text, len(text) - HALF)} …" if cut_short else text


def _of_answer(end: Answered) -> dict[str, Any]:
    same = ("strategy", "extractive", "generated_by", "handover", "stopped", "cut")
    return {
        **{name: getattr(end, name) for name in same},
        **dict(end.usage),
        "left_out": end.left_out + len(end.doubted),
        "answer": end.text[:ANSWER_CHARS],
    }


def became(retrieved: Retrieved | None, end: Answered | Failed) -> Became:
    if retrieved is None or isinstance(end, Failed):
        return "failed"
    if retrieved.courtesy is not None:
        return "courtesy"
    if end.pending is None and not any(source.cited for source in end.sources):
        return "answered" if end.stopped else "refused"  # a stopped answer has no citations yet
    return "page" if end.certainty == "place" else "answered"
