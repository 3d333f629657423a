"""The interface of strategies, from a task to the pieces of an answer, and the last step of all of them: writing.

    Task ─▶ Strategy.run ─▶ Step ... (for the trace)
                            SourcesFound (further sources)
                            Token, Citation ... (the answer), CutShort, Usage

A strategy has no part in Kafka, stops and deadlines: its caller (pipelines.query.answer.answering) closes it when the
answer is stopped, and handles its errors.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import date, datetime
from time import perf_counter
from typing import ClassVar, Protocol

from pipelines.query.answer import prompt as answer
from pipelines.query.answer.citation_filter import CitationFilter
from pipelines.query.answer.grounding import Grounds
from pipelines.query.answer.judging import Judge, Refuted
from pipelines.query.answer.marks import Unmarked
from pipelines.query.answer.tools.pages import Finder
from pipelines.query.answer.tools.registry import SiteTools, no_tools
from pipelines.query.live.site_prompts import SitePrompts
from pipelines.query.ports import (
    ChatModel,
    ChatModels,
    Completion,
    ModelSilent,
    ModelThoughtTooLong,
    ModelUnfounded,
)
from pipelines.query.rephrase.rewrite import conversation
from pipelines.query.search.widen import fit
from pipelines.runtime.settings import JudgeName, StepName, StepSettings, ToolCalling
from prompts.loader import ChatMessage, Example, Prompt, fence
from schemas.answer import STEP_CHARS, Citation, Doubted, SourcesFound, Step, StepKind, Token, Usage, WholeTable
from schemas.flow import SentenceCheck
from schemas.outcome import DoubtedSentence
from schemas.page import FieldName
from schemas.query import PendingCall, Retrieved, Source

THOUGHT_TOKENS = 500  # of the notes that a model takes before it writes
NOTES_CHARS = 4_000  # of what a strategy found out, in the prompt of the answer

MOST_SECONDS = 600.0  # of a task that names no time
MARGIN = 1.0  # seconds that a judge leaves
TURN = 500  # characters that are looked at in one go

CUT = " …"  # ends an answer that the limit of what its model may write has cut


@dataclass(frozen=True)
class CutShort:
    """The answer ends at the model's token limit."""


@dataclass(frozen=True)
class LeftOut:
    """The model's sentences that its sources do not support: the number of those left out, and the marked ones."""

    sentences: int
    marked: tuple[Doubted, ...] = ()
    reasons: tuple[DoubtedSentence, ...] = ()  # of all of them


@dataclass(frozen=True)
class TakenBack:
    """Discard text and citations so far: they follow again without the sentences that a judge has refuted."""


@dataclass(frozen=True)
class Prompted:
    """The model's input for the answer. Only trials show it."""

    messages: tuple[ChatMessage, ...]


Piece = (
    Token
    | Citation
    | Step
    | SourcesFound
    | Usage
    | CutShort
    | LeftOut
    | TakenBack
    | WholeTable
    | Prompted
    | PendingCall
)


@dataclass(frozen=True)
class Task:
    """One question with its retrieved sources and limits."""

    retrieved: Retrieved
    site: str  # the website's title, as visitors know it
    language: str  # the visitor's, in English
    now: datetime  # where the site is
    budget: int  # characters of source text
    history_messages: int
    room: int = answer.OUTPUT_TOKENS  # tokens of the answer
    terms: str = ""  # what the site calls things in that language
    examples: Sequence[Example] | None = None  # worked answers, the nearest last; None: all of the prompt's
    tool_calls: ToolCalling = "auto"
    until: float = math.inf  # by perf_counter: then the visitor has to get something else
    judge: JudgeName = "none"
    check: SentenceCheck = "drop"
    note: str = ""  # marks what is not borne out, in the visitor's language
    thinks: bool | None = None  # over the sources before it writes; None: as the strategy does

    @property
    def left(self) -> float:
        """Seconds left for the strategy."""
        return min(self.until - perf_counter(), MOST_SECONDS)

    @property
    def today(self) -> date:
        return self.now.date()

    @property
    def fence(self) -> str:
        return fence(self.retrieved.request.request_id)

    @property
    def question(self) -> str:
        return self.retrieved.question


@dataclass(frozen=True)
class StrategyContext:
    """Models, prompts and searches for strategies; shared by all answers of a process."""

    models: ChatModels
    site_prompts: SitePrompts
    finder: Finder
    judges: Mapping[JudgeName, Judge] = field(default_factory=dict)
    tools: SiteTools = no_tools

    def model(self, step: StepName, task: Task) -> ChatModel:
        """The model for a step of the task's site."""
        request = task.retrieved.request
        tuned = request.under
        own = StepSettings(model=tuned.model, temperature=tuned.temperature)
        return self.models.of(request.site, step, request.request_id, own)

    def prompt(self, name: str, task: Task) -> Prompt:
        """A trial's prompt, else the site's own, else ours. Raises: BadTrialPrompt."""
        return self.site_prompts.asked(task.retrieved.request, name)


class Strategy(Protocol):
    """A way to write an answer. It has no state between two runs.

    `searches`: it searches for sources itself, so it also runs without retrieved sources.
    """

    searches: ClassVar[bool]

    def run(self, task: Task) -> AsyncGenerator[Piece, None]:
        """The pieces of the answer, in order.

        Raises:
            ModelError: the model gave no answer. Retryable: a search failed.
        """
        ...


SourceKey = tuple[str, str, FieldName, int]


@dataclass
class NumberedSources:
    """The sources of one run, numbered in the order of arrival. Numbers never change."""

    searches: list[list[Source]] = field(default_factory=list)
    _numbers: dict[SourceKey, int] = field(default_factory=dict)

    @classmethod
    def of(cls, sources: Sequence[Source]) -> NumberedSources:
        """The retrieved sources, under their numbers."""
        library = cls([list(sources)])
        library._numbers = {_place(source): source.n for source in sources}
        return library

    def add(self, sources: Sequence[Source]) -> list[Source]:
        """These sources under this library's numbers; new ones are added."""
        fresh: list[Source] = []
        numbered: list[Source] = []
        for source in sources:
            known = self._numbers.get(_place(source))
            n = known or max((0, *self._numbers.values())) + 1
            numbered.append(source.model_copy(update={"n": n}))
            if known is None:
                self._numbers[_place(source)] = n
                fresh.append(numbered[-1])
        self.searches.append(fresh)
        return numbered

    @property
    def all(self) -> tuple[Source, ...]:
        """By number."""
        return tuple(sorted((s for search in self.searches for s in search), key=lambda source: source.n))

    def event(self, task: Task) -> SourcesFound:
        """An event with all sources."""
        return SourcesFound(grade=task.retrieved.grade if task.retrieved.sources else 0, sources=self.all)

    @property
    def ranked(self) -> tuple[Source, ...]:
        """The sources by rank within their search, since each search looked for something that was missing."""
        ranks = [(rank, i, s) for i, search in enumerate(self.searches) for rank, s in enumerate(search)]
        return tuple(source for _, _, source in sorted(ranks, key=lambda entry: entry[:2]))


def _place(source: Source) -> SourceKey:
    return source.page_id, source.lang, source.field, source.ord


def step(kind: StepKind, asked: str, said: str, began: float) -> Step:
    """A step of the trace that began at `began` (perf_counter)."""
    return Step(kind=kind, asked=shortened(asked), said=shortened(said), ms=(perf_counter() - began) * 1000)


def shortened(text: str, limit: int = STEP_CHARS) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def asked(
    means: StrategyContext, prompt: str, task: Task, values: Mapping[str, str], *, examples: bool = True
) -> tuple[ChatMessage, ...]:
    """The messages of an intermediate prompt.

    Args:
        values: values of further variables; those that this prompt does not have are ignored.
        examples: whether to include the prompt's worked examples.
    """
    chosen = means.prompt(prompt, task)
    shared = {
        "site": task.site,
        "language": task.language,
        "today": f"{task.today:%A}, {task.today.isoformat()}",
        "fence": task.fence,
        "conversation": conversation(task.retrieved.request.history, task.history_messages),
        "question": task.question,
    }
    known = {name: value for name, value in (shared | dict(values)).items() if name in chosen.variables}
    return chosen.messages(known, task.retrieved.request.lang, None if examples else ())


async def ask(
    means: StrategyContext, prompt: StepName, task: Task, *, max_tokens: int, **values: str
) -> tuple[Completion, Step]:
    """The model's reply to an intermediate prompt. Raises: ModelError."""
    began = perf_counter()
    model = means.model(prompt, task)
    completion = await model.complete(asked(means, prompt, task, values), max_tokens=max_tokens)
    return completion, step("model", prompt, completion.text.strip(), began)


async def write(
    means: StrategyContext,
    task: Task,
    sources: Sequence[Source],
    notes: Sequence[str] = (),
    facts: Sequence[str] = (),
    *,
    thinks: bool = False,
) -> AsyncGenerator[Piece, None]:
    """Stream the answer from the best sources.

    Args:
        notes: intermediate findings, oldest first; data for the model, like sources.
        facts: notes that no model has written: they support sentences, like sources.
        thinks: whether the model first writes hidden notes, unless a trial sets it.

    Raises:
        ModelError.
    """
    if task.thinks or (task.thinks is None and thinks):
        shown = answer.fenced(fit(sources, task.budget), task.fence)
        thought, thinking = await ask(means, "think", task, max_tokens=THOUGHT_TOKENS, sources=shown)
        yield thought.usage
        yield thinking
        notes = [*notes, thought.text.strip()]
    began = perf_counter()
    chat = answer.chat(
        means.prompt("answer", task),
        task.retrieved.model_copy(update={"sources": tuple(sources)}),
        site=task.site,
        language=task.language,
        today=task.today,
        budget=task.budget,
        history_messages=task.history_messages,
        notes=shortened("\n".join(notes), NOTES_CHARS),
        terms=task.terms,
        examples=task.examples,
    )
    request = task.retrieved.request
    yield Prompted(chat.messages)
    known = (f"{task.today:%A}, {task.today.isoformat()}", task.site, task.terms, *facts)
    grounds = Grounds(chat.sources, f"{task.question}\n\n{request.question}", request.lang, known)
    judge, model = means.judges.get(task.judge), means.model("answer", task)
    async with aclosing(cited(model, chat.messages, chat.sources, began, task, grounds, judge)) as pieces:
        async for piece in pieces:
            yield piece


async def cited(
    model: ChatModel,
    messages: Sequence[ChatMessage],
    sources: Sequence[Source],
    began: float,
    task: Task,
    grounds: Grounds | None = None,
    judge: Judge | None = None,
) -> AsyncGenerator[Piece, None]:
    """The model's text with citations, without the sentences that these do not support.

    Args:
        grounds: the rules that check sentences; None: no check.
        judge: checks the remaining sentences at the end.

    Raises:
        ModelError.
    """
    checked = grounds.doubt if grounds and sources and task.check != "off" else None
    note = task.note if task.check == "mark" else ""
    filter = CitationFilter(sources, checked, task.retrieved.request.lang, note)
    cut, written, unmarked = False, "", Unmarked(task.fence)
    async with aclosing(model.stream(messages, max_tokens=task.room)) as deltas:
        async for delta in deltas:
            text = unmarked.feed(delta.text)
            written += text
            async with aclosing(_filtered(filter, text)) as events:
                async for event in events:
                    yield event
            if delta.usage is not None:
                yield delta.usage
            cut = delta.cut
    if rest := unmarked.finish():
        written += rest
        async with aclosing(_filtered(filter, rest)) as events:
            async for event in events:
                yield event
    for event in filter.finish(cut=cut):
        yield event
    if judge is not None and checked is not None and filter.citations:
        refuted, told = await _refuted(judge, filter, sources, task)
        for piece in told:
            yield piece
        if refuted:
            filter = CitationFilter(sources, Refuted(checked, refuted).doubt, task.retrieved.request.lang, note)
            kept = [event async for event in _filtered(filter, written)] + filter.finish(cut=cut)
            for again in [TakenBack(), *kept] if filter.founded else ():
                yield again
    if filter.left_out or filter.doubted:
        yield LeftOut(len(filter.left_out), tuple(filter.doubted), tuple(filter.reasons))
        yield step("model", "check", _reasons(filter), began)
        if not filter.founded:
            raise ModelUnfounded(f"nothing that its sources bear out: {_reasons(filter)}")
    if not filter.text and cut:
        raise ModelThoughtTooLong(f"{task.room} tokens were not enough for its first word")
    if not filter.text:
        raise ModelSilent("it wrote nothing")
    if cut:
        yield Token(text=CUT)
        yield CutShort()
    dropped = f" ({filter.dropped} citations of no source)" if filter.dropped else ""
    limited = ", cut at the limit of what it may write" if cut else ""
    yield step("model", "answer", f"{len(filter.text)} characters{limited}{dropped}", began)


async def _filtered(filter: CitationFilter, text: str) -> AsyncGenerator[Token | Citation, None]:
    """Filter in small pieces: a model may send everything at once, and other answers need the event loop."""
    for at in range(0, len(text), TURN):
        for event in filter.feed(text[at : at + TURN]):
            yield event
        await asyncio.sleep(0)


async def _refuted(
    judge: Judge, filter: CitationFilter, sources: Sequence[Source], task: Task
) -> tuple[frozenset[str], list[Usage | Step]]:
    began = perf_counter()
    refuted, verdicts = await judge.refuted(filter.stated, sources, task.retrieved.request, task.left - MARGIN)
    told: list[Usage | Step] = [] if verdicts.usage is None else [Usage().and_for(verdicts.usage)]
    if verdicts.chances or verdicts.failed:
        said = verdicts.failed or f"{len(refuted)} of {len(verdicts.chances)} refuted"
        told.append(step("model", "judge", said, began))
    return refuted, told


def _reasons(filter: CitationFilter) -> str:
    doubts = [f"{each.kind} {each.said!r}" for each in filter.reasons]
    return shortened(f"{'left out' if filter.left_out else 'marked'}: {'; '.join(doubts)}")
