"""Outcomes: the outcome of a question is sent once, after its visitor has had the last event.

answer.events: done ─▶ Outcomes.say ─▶ query.outcomes ─▶ log

No visitor waits for it, and still none is lost: the question's message counts as done when the outcome is confirmed. A
worker that dies between the two leaves an answer that is complete; who takes the question over finds it in the log of
events, and says the same outcome (pipelines.query.publish.begin). It may so be said twice, under one id.
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

Known = Question | Rephrased | Retrieved  # what the stages have found out of a question so far
KnownKind = type[Question] | type[Rephrased] | type[Retrieved]


ANSWER_CHARS = 8_000  # of an answer, that are kept
MOST_DOUBTED = 40  # doubted sentences of an answer that are kept
HALF = 40  # characters at the end of a text that was cut, that may be half a number or an address


class Outcomes:
    """Sends the outcomes of questions, where their site wants that kept. One per stage."""

    def __init__(self, settings: QuerySettings, privacy: SitePrivacy | None = None) -> None:
        self._label = settings.label
        # The first answer that fails is an increase only where there was a 0 before it.
        for site in settings.labels:
            for got in get_args(Became):
                ANSWERS.labels(site, got)
        self._masks = Masks(settings.sites, privacy)

    async def say(
        self, known: Known, told: Published, sender: Sender, *, again: bool = False, made: AnswerRecord | None = None
    ) -> None:
        """
        Args:
            made: how the answer came about; None: not known here.
            again: the answer had ended before this try, and was counted then.

        Raises: Retryable: not confirmed.
        """
        request = question_of(known)
        if isinstance(told.end, Answered) and not isinstance(known, Retrieved):
            return  # another worker has answered it; the answer stage knows how, and says so
        if not again:
            _count(known, told, self._label)
        if request.logged_as is None or told.end is None or not self._masks.logs(request.site):
            return
        # A thread: numbers of many regions are looked for in a question, an answer and all passages that it cites.
        event = await asyncio.to_thread(self._event, known, told.end, told.first_word_at, request.logged_as)
        # Who says an outcome again knows only the first calls of its models: the log may have all of them.
        if not again and not request.groups and self._masks.logs_prompts(request.site):
            event = await asyncio.to_thread(self._explained, event, known, told.end, made or AnswerRecord())
        await sender.send(OUTCOMES, event.key, event)

    def _event(
        self, known: Known, end: Answered | Failed, first_word_at: datetime | None, logged_as: str
    ) -> OutcomeEvent:
        request = question_of(known)
        said = outcome(known, end, first_word_at)
        words = {name: self._masks.kept(request.site, getattr(said, name)) for name in ("question", "rephrased")}
        if request.groups and request.history:
            words["rephrased"] = None  # it may say what earlier answers did, which not everybody may read
        # Words can be read from a vector (Morris et al. 2023, "Text Embeddings Reveal (Almost) As Much As Text"): of
        # what was masked, or is not kept, there is none.
        vector = said.vector if said.rephrased is not None and words["rephrased"] == said.rephrased else None
        sources = end.sources if isinstance(end, Answered) else ()
        # What a tool has worked out repeats what the visitor gave it.
        public = [source.text for source in sources if source.cited and source.kind == "page"]
        # What only some may read is not for everybody who may read the log.
        answer = None if request.groups else self._masks.kept(request.site, said.answer, public)
        runs = tuple(self._masked(request.site, run, public) for run in said.tool_runs if answer is not None)
        return OutcomeEvent(
            site=request.site,
            request_id=request.request_id,
            conversation=logged_as,
            event=said.model_copy(update={**words, "answer": answer, "tool_runs": runs, "vector": vector}),
        )

    def _masked(self, site: str, run: ToolRun, public: Iterable[str]) -> ToolRun:
        kept = {name: self._masks.kept(site, _whole(getattr(run, name)), public) or "" for name in ("call", "said")}
        return run.model_copy(update=kept)

    def _explained(self, event: OutcomeEvent, known: Known, end: Answered | Failed, made: AnswerRecord) -> OutcomeEvent:
        """With the calls of models and the doubted sentences, masked but for what the pages say."""
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


def _count(known: Known, told: Published, label: Callable[[str], str]) -> None:
    """For Prometheus: questions that are not logged as well, but not those of who tries something out."""
    request = question_of(known)
    if told.end is None or request.trial is not None:
        return
    # The clocks of two machines.
    spent = max(0.0, (datetime.now(UTC) - request.asked_at).total_seconds())
    trace, got = tracing.exemplar(), became(known if isinstance(known, Retrieved) else None, told.end)
    ANSWERS.labels(label(request.site), got).inc(exemplar=trace)
    ANSWER_SECONDS.labels(got).observe(spent, trace)
    if told.first_word_at is not None:
        FIRST_WORD_SECONDS.observe(max(0.0, (told.first_word_at - request.asked_at).total_seconds()), trace)


def question_of(known: Known) -> Question:
    return known if isinstance(known, Question) else known.request


def outcome(known: Known, end: Answered | Failed, first_word_at: datetime | None) -> Outcome:
    """The outcome of a question, its words as they are."""
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
        first_token_ms=max(0.0, first) if first is not None else None,  # the clocks of two machines
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
        return "answered" if end.stopped else "refused"  # who stops an answer was about to get one
    return "page" if end.certainty == "place" else "answered"
