"""Answering: turns sources into the events of an answer, by a model or by quoting.

query.retrieved ─▶ rephrased, sources ─▶ token, citation ... ─▶ answer, done ─▶ answer.events
                         with a model ─▶ the site's strategy writes
     without one, or after it has failed ─▶ the best units are quoted
                 the visitor stops it ─▶ the model's stream is closed, and the text so far is the answer
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from time import perf_counter

import structlog

from pipelines.query.answer.cite import used_sources
from pipelines.query.answer.clock import Clock
from pipelines.query.answer.links import whole_links, with_whole_links
from pipelines.query.answer.prompt import OUTPUT_TOKENS
from pipelines.query.answer.pump import StrategyFailed, pumped
from pipelines.query.answer.remedies import remedy
from pipelines.query.answer.strategies.base import (
    CutShort,
    LeftOut,
    Piece,
    Prompted,
    Strategy,
    TakenBack,
    Task,
    shortened,
    step,
)
from pipelines.query.extractive.confidence import graded, least_for_card
from pipelines.query.extractive.quote import OwnWords, quote
from pipelines.query.extractive.replies import narrower, refused, reply
from pipelines.query.live.glossary import terms
from pipelines.query.live.site_prompts import SitePrompts
from pipelines.query.model_calls import AnswerRecord, recorded
from pipelines.query.outcomes import became
from pipelines.query.ports import ContentFiltered, ExamplePicker, ModelError, TokensSpent
from pipelines.query.publish import Publication
from pipelines.query.settings import QuerySettings
from pipelines.query.token_budget import TokenBudget
from pipelines.query.translate import Translator
from pipelines.runtime.errors import PagewireError
from pipelines.runtime.settings import StrategyName
from prompts.loader import ChatMessage
from prompts.phrases import Phrases
from schemas.answer import (
    Answered,
    Certainty,
    Citation,
    Done,
    Doubted,
    Failed,
    GeneratedBy,
    PendingCall,
    PromptMessage,
    QuestionRephrased,
    SourcesFound,
    Step,
    Token,
    TrialFindings,
    Usage,
    WholeTable,
)
from schemas.outcome import DoubtedSentence
from schemas.query import HISTORY_MESSAGES, Corrected, CourtesyKind, Question, Retrieved, Source
from text.markdown import as_text

log = structlog.get_logger(__name__)

QUOTING_TIME = 5.0  # seconds before the deadline at which the model must end, so that there is time to quote
TRACE_STEPS = 40
LONGER = 4  # factor for the token limit of a model that was still thinking when it reached the limit


@dataclass
class _Made:
    """The state of one answer."""

    sources: tuple[Source, ...]
    strategy: str = "quote"
    extractive: bool = True
    certainty: Certainty | None = None
    corrected: bool = False  # an editor wrote its text
    cut: bool = False
    left_out: int = 0
    doubted: tuple[Doubted, ...] = ()
    reasons: list[DoubtedSentence] = field(default_factory=list)  # including those of earlier tries
    tables: list[WholeTable] = field(default_factory=list)
    pending: PendingCall | None = None
    prompt: tuple[ChatMessage, ...] = ()
    usage: Usage = field(default_factory=Usage)
    trace: list[Step] = field(default_factory=list)

    @property
    def generated_by(self) -> GeneratedBy:
        if not self.extractive:
            return "model"
        return "quotation" if self.certainty in ("said", "place") and not self.corrected else "site"

    def note(self, step: Step) -> None:
        if len(self.trace) < TRACE_STEPS:
            self.trace.append(step)

    def spent(self, usage: Usage) -> None:
        self.usage = self.usage.and_for(usage).model_copy(update={"model": usage.model or self.usage.model})


class Answering:
    """Writes answers. One per process.

    Args:
        strategies: by name; empty without a model.
        translator: translates our own sentences; None without a model.
        courteous: answers questions about the conversation; None without a model.
        examples: picks similar worked answers; default: all of the prompt's own.
        token_budget: limits a site's tokens of the day; default: no limit.
    """

    def __init__(
        self,
        settings: QuerySettings,
        site_prompts: SitePrompts,
        strategies: Mapping[StrategyName, Strategy],
        translator: Translator | None = None,
        courteous: Strategy | None = None,
        clock: Clock | None = None,
        examples: ExamplePicker | None = None,
        token_budget: TokenBudget | None = None,
    ) -> None:
        self._settings = settings
        self._translator = translator
        self._prompts = site_prompts
        self._strategies = {str(name): strategy for name, strategy in strategies.items()}  # without `quote`
        self._courteous = courteous
        self._clock = clock or datetime.now
        self._examples = examples
        self._token_budget = token_budget

    async def answer(self, retrieved: Retrieved, to: Publication, stopped: asyncio.Event) -> AnswerRecord:
        """Publish the whole answer, `rephrased` to `done`.

        Args:
            stopped: set when the visitor stops the answer, which then ends with the text so far.

        Returns: Model calls and doubts, for the question log.

        Raises: Retryable: the broker is away.
        """
        with recorded() as calls:
            reasons = await self._answer(retrieved, to, stopped)
        return AnswerRecord(tuple(calls), tuple(dict.fromkeys(reasons)))

    async def _answer(self, retrieved: Retrieved, to: Publication, stopped: asyncio.Event) -> Sequence[DoubtedSentence]:
        began = perf_counter()
        request, retrieved = retrieved.request, with_whole_links(retrieved)
        await to.put(
            QuestionRephrased(question=retrieved.question, mode=retrieved.mode),
            SourcesFound(grade=retrieved.grade, sources=retrieved.sources),
            more=not self._strategies,  # without a model, the answer follows at once
        )
        made = _Made(retrieved.sources, usage=retrieved.usage)
        did = self._settings.flow_of(request.site, request.under).rephrase
        if did == "expand" and retrieved.usage.completion_tokens:  # a model has written the search text
            ms = retrieved.timings_ms.get("rephrase", 0.0)
            made.note(Step(kind="model", asked=did, said=shortened(retrieved.question), ms=ms))
        if stopped.is_set():
            failed = None
        elif datetime.now(UTC) > request.deadline:
            failed = "timeout"
        else:
            failed = await self._write(self._task(retrieved), made, to, stopped)
        ms = (perf_counter() - began) * 1000
        if failed is not None:
            log.warning("not answered", code=failed, strategy=made.strategy, ms=round(ms))
            if to.text:
                await to.restart()
            await to.put(Failed(code=failed, message=self._phrases(request).error(failed, request.lang)), Done())
            return made.reasons
        sources = used_sources(made.sources, to.citations)
        answered = Answered(
            text=to.text,
            citations=tuple(to.citations),
            sources=sources,
            extractive=made.extractive,
            certainty=made.certainty,
            generated_by=made.generated_by,
            handover=self._settings.site(request.site).hands_over
            and (retrieved.person or made.certainty == "pages")
            and not stopped.is_set(),
            stopped=stopped.is_set(),
            cut=made.cut,
            left_out=made.left_out,
            doubted=made.doubted,
            narrower=() if stopped.is_set() or retrieved.corrected is not None else narrower(retrieved),
            tables=tuple(made.tables),
            pending=made.pending,
            strategy=made.strategy,
            trace=tuple(made.trace),
            found=retrieved.found if request.trial is None else (),
            usage=made.usage,
            timings_ms=retrieved.timings_ms | {"answer": ms},
        )
        if request.trial is not None:
            answered = answered.model_copy(update={"trial": _findings(retrieved, answered, made)})
        await to.put(answered, Done())
        log.info(
            "answered",
            strategy=made.strategy,
            steps=[step.kind for step in made.trace],
            cited=[source.page_id for source in sources if source.cited],
            stopped=answered.stopped,
            cut=answered.cut,
            left_out=made.left_out,
            doubted=len(made.doubted),
            ms=round(ms),
        )
        return made.reasons

    def _phrases(self, request: Question) -> Phrases:
        return self._prompts.of(request.site).phrases

    def _task(self, retrieved: Retrieved) -> Task:
        request = retrieved.request
        site, limits = self._settings.site(request.site), self._settings.step(request.site, "answer")
        flow = self._settings.flow_of(request.site, request.under)
        shown = " ".join([retrieved.question, *(source.text for source in retrieved.sources)])
        return Task(
            retrieved,
            site=site.title or request.site,
            language=self._phrases(request).name(request.lang),
            now=self._clock(site.zone),
            budget=flow.context_chars,
            check=flow.sentence_check,
            history_messages=HISTORY_MESSAGES,
            room=limits.max_tokens or OUTPUT_TOKENS,
            tool_calls=self._settings.tool_calls,
            judge=self._settings.judge,
            thinks=request.under.think,
            terms=terms(self._prompts.of(request.site).glossary_of(site), request.lang, shown),
        )

    async def _write(self, task: Task, made: _Made, to: Publication, stopped: asyncio.Event) -> str | None:
        """Publish the text. Returns: the code of an error, if the visitor gets one instead."""
        if task.retrieved.courtesy is not None:
            made.certainty = "courtesy"
            return await self._reply(task, task.retrieved.courtesy, made, to, stopped)
        if (right := task.retrieved.corrected) is not None and right.text:
            await _corrected(right, made, to)
            return None
        retrieved, phrases = task.retrieved, self._phrases(task.retrieved.request)
        flow = self._settings.flow_of(retrieved.request.site, retrieved.request.under)
        name: str = retrieved.request.under.strategy or self._settings.site(retrieved.request.site).strategy
        strategy = self._strategies.get(name)
        if strategy is not None and self._token_budget is not None and self._token_budget.over(retrieved.request.site):
            # The retrieve stage graded for a model; without one the grade may be worse.
            made.note(Step(kind="error", said=TokensSpent.code))
            strategy = None
            if flow.gate and retrieved.sure is not None:
                least = retrieved.request.under.sure_threshold
                least = least_for_card(retrieved.gate) if least is None else least
                grade = graded(retrieved.grade, retrieved.sure, writes=False, least=least)
                retrieved = retrieved.model_copy(update={"grade": grade})
                task = replace(task, retrieved=retrieved)
        refuses = refused(retrieved.grade)
        reads = flow.retriever == "none" or (retrieved.sources and not refuses)
        if strategy is not None and (strategy.searches or reads):
            made.strategy, made.extractive = name, False
            failure = await self._by_model(strategy, await self._exemplified(task), made, to, stopped)
            if stopped.is_set() or (failure is None and to.text):
                return None
            if failure is not None:
                spent = isinstance(failure, TokensSpent)
                if isinstance(failure, ContentFiltered) or not (made.sources or spent):
                    return failure.code
                # The pages can still be quoted, after the streamed text is discarded.
                log.warning("the model failed, quoting instead", code=failure.code, error=str(failure))
                await to.restart()
        made.strategy, made.extractive, made.cut, made.left_out, made.doubted = "quote", True, False, 0, ()
        # Only pages can be quoted, not results of tools.
        made.sources, made.pending = tuple(each for each in made.sources if each.kind == "page"), None
        # The grade does not count if the strategy has found further sources.
        if made.sources and not (refuses and made.sources == retrieved.sources):
            # Evidence refers to the numbers of the retrieved sources, which the strategy's sources do not have.
            found = {"sources": made.sources} | (
                {} if made.sources == retrieved.sources else {"evidence": (), "parts": (), "tables": ()}
            )
            began, quoted = perf_counter(), retrieved.model_copy(update=found)
            quotation = quote(quoted, task.now, await self._own_words(retrieved.request))
            if stopped.is_set():
                return None
            made.certainty = quotation.certainty
            for event in quotation.events:
                await _publish(event, made, to)
            made.note(step("quote", task.question, f"{len(quotation.citations)} units", began))
        if not to.text:
            made.certainty = "pages"
            asked = retrieved.request
            contact = self._prompts.of(asked.site).reached_by(self._settings.site(asked.site), asked.lang)
            text = await self._translated(reply(retrieved, phrases, contact), retrieved.request)
            await to.put(Token(text=text), more=True)
        return None

    async def _reply(
        self, task: Task, courtesy: CourtesyKind, made: _Made, to: Publication, stopped: asyncio.Event
    ) -> str | None:
        """Publish a courtesy: a fixed sentence, or a model's reply to a question about the conversation."""
        made.strategy = "courtesy"
        asked = task.retrieved.request
        if task.retrieved.person:
            await to.put(Token(text=await self._translated(self._to_a_person(asked), asked)), more=True)
            return None
        task = replace(task, room=self._settings.step(task.retrieved.request.site, "courtesy").max_tokens or task.room)
        if courtesy == "conversation" and self._courteous is not None and task.retrieved.request.history:
            made.extractive = False
            failure = await self._by_model(self._courteous, task, made, to, stopped)
            if stopped.is_set() or (failure is None and to.text):
                return None
            if to.text:
                await to.restart()
        made.extractive, made.cut = True, False
        text = self._phrases(task.retrieved.request).say(courtesy, task.retrieved.request.lang)
        await to.put(Token(text=await self._translated(text, task.retrieved.request)), more=True)
        return None

    def _to_a_person(self, asked: Question) -> str:
        """The offer of the form, if the site has one, and the site's contact."""
        site = self._settings.site(asked.site)
        form = self._phrases(asked).say("person", asked.lang) if site.hands_over else ""
        return "\n\n".join(filter(None, (form, self._prompts.of(asked.site).reached_by(site, asked.lang))))

    async def _exemplified(self, task: Task) -> Task:
        """The task with similar worked answers, and with the note that marks a doubtful sentence."""
        retrieved = task.retrieved
        if task.check == "mark":
            note = self._phrases(retrieved.request).say("doubted", retrieved.request.lang)
            task = replace(task, note=await self._translated(note, retrieved.request))
        if self._examples is None:
            return task
        lang = retrieved.request.lang
        return replace(task, examples=await self._examples.pick("answer", retrieved.request, lang, retrieved.question))

    async def _own_words(self, request: Question) -> OwnWords:
        phrases, lang = self._phrases(request), request.lang
        ours = [phrases.say(name, lang) for name in ("lead-in", "closest", "missing", "no-row")]
        return OwnWords(*[await self._translated(text, request) for text in ours])

    async def _translated(self, text: str, request: Question) -> str:
        """Our own sentence, translated if we have none in the visitor's language."""
        phrases = self._phrases(request)
        if self._translator is None or phrases.speaks(request.lang):
            return text
        glossary = self._prompts.of(request.site).glossary_of(self._settings.site(request.site))
        language = phrases.name(request.lang)
        return await self._translator.into(request.lang, language, text, glossary, site=request.site)

    async def _by_model(
        self, strategy: Strategy, task: Task, made: _Made, to: Publication, stopped: asyncio.Event
    ) -> PagewireError | None:
        """Run the strategy, and retry where that may help. Returns: the last failure, if no try succeeded."""
        failures: list[ModelError] = []
        while not stopped.is_set():
            made.cut, made.left_out, made.doubted, made.pending = False, 0, (), None
            seconds = (task.retrieved.request.deadline - datetime.now(UTC)).total_seconds() - QUOTING_TIME
            try:
                async with aclosing(
                    pumped(strategy.run(replace(task, until=perf_counter() + seconds)), stopped, seconds)
                ) as batches:
                    async for pieces in batches:
                        for piece in pieces:
                            await _publish(piece, made, to)
                        await to.put()
                return None
            except StrategyFailed as err:
                failure = err.failure
            made.note(Step(kind="error", said=failure.code))
            if not isinstance(failure, ModelError):
                return failure
            failures.append(failure)
            seconds = (task.retrieved.request.deadline - datetime.now(UTC)).total_seconds() - QUOTING_TIME
            again = remedy(failures, seconds)
            if again is None:
                return failure
            log.info(
                "asking the model again", code=failure.code, wait=again.wait, shorter=again.shorter, longer=again.longer
            )
            if to.text:
                await to.restart()
            if again.shorter:
                task = replace(task, budget=task.budget // 2, history_messages=0, examples=())
            if again.longer:
                task = replace(task, room=task.room * LONGER)
            with suppress(TimeoutError):
                async with asyncio.timeout(again.wait):
                    await stopped.wait()
        return None


def _findings(retrieved: Retrieved, answered: Answered, made: _Made) -> TrialFindings:
    return TrialFindings(
        became=became(retrieved, answered),
        gate=retrieved.gate,
        sure=retrieved.sure,
        corrections=retrieved.corrected.ids if retrieved.corrected else (),
        prompt=tuple(PromptMessage(role=message.role, text=message.content) for message in made.prompt),
        index=retrieved.index,
        found=retrieved.found,
    )


async def _corrected(right: Corrected, made: _Made, to: Publication) -> None:
    """Publish an editor's text. A fixed answer cites its page."""
    text = as_text(right.text)
    made.strategy, made.certainty, made.corrected = "correction", "said", True
    await to.put(Token(text=text), more=True)
    if made.sources:
        await to.put(Citation(n=1, start=0, end=len(text)), more=True)


async def _publish(piece: Piece, made: _Made, to: Publication) -> None:
    """Keep a piece in `made`, or put it as an event, which waits for the other events of the batch."""
    match piece:
        case Step():
            made.note(piece)
        case Usage():
            made.spent(piece)
        case CutShort():
            made.cut = True
        case LeftOut():
            made.left_out, made.doubted = piece.sentences, piece.marked
            made.reasons += piece.reasons
        case TakenBack():
            await to.restart()
        case WholeTable():
            made.tables.append(piece)
        case PendingCall():
            made.pending = piece
        case Prompted(messages=messages):
            made.prompt = messages
        case SourcesFound():
            made.sources = whole_links(piece.sources)
            await to.put(piece.model_copy(update={"sources": made.sources}), more=True)
        case _:
            await to.put(piece, more=True)
