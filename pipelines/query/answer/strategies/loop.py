"""The tool loop: a model calls tools until it knows enough. All strategies that search use it.

    prompt, tools ─▶ model ─ calls ─▶ checked ─▶ run ─▶ results, sources with their numbers ─▶ model ...
                       │                ├ unknown, malformed or repeated ─▶ an error for the model
                       │                └ a tool of the site with a missing argument ─▶ a question to the visitor
                       └ no calls, or rounds, time or characters are used up ─▶ end

A strategy sets the prompt, the tools and the number of rounds, and uses the sources in its own way.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from pipelines.query.answer.prompt import fenced
from pipelines.query.answer.strategies.base import (
    NumberedSources,
    Piece,
    StrategyContext,
    Task,
    asked,
    shortened,
    step,
)
from pipelines.query.answer.strategies.turns import ToolTurn, actions, native_messages, spoken, text_messages
from pipelines.query.answer.tools.calendar import Calendar
from pipelines.query.answer.tools.given import unsaid
from pipelines.query.answer.tools.pages import Pages
from pipelines.query.answer.tools.registry import ARGUMENT_CHARS, BadCall, MissingSlots, Tool, ToolFailed, Tools
from pipelines.query.answer.tools.results import as_source
from pipelines.query.ports import NoToolCalls
from pipelines.query.search.widen import fit
from pipelines.runtime.settings import StepName
from prompts.loader import ChatMessage, ToolCall
from schemas.answer import Step, StepKind, Usage
from schemas.query import PendingCall, Source
from text.words import stems

CALLS = 4  # of a round
CALL_TOKENS = 400  # of a round: calls, and a thought beside them
REPEATS = 2  # of one call, until the model is stuck
FOUND_CHARS = 2_500  # of what one search shows
ROOM = 2  # times the site's characters of sources that all tools of a run may show
TIME = 0.5  # of what the visitor still waits; the rest is for the answer
LEAST_ROOM = 200  # characters of a result
SAID_CHARS = 2_000  # of what a model says beside its calls

REPEATED = "You have called exactly this before. Look for something else, or finish."
TOO_LATE = "that took too long"
FAILED = "this could not be worked out: say so, and do not work it out yourself"
AT_LIMIT = "Nothing more was found in the time there was: say kindly what is known and what is not."

_KINDS: dict[str, StepKind] = {"search": "search", "lookup": "lookup"}
# The model chooses what to search: visitors are not asked for the arguments of these tools.
_LOOKS = frozenset(("search", "lookup", "page"))


@dataclass(frozen=True)
class Way:
    """A strategy's settings of the loop.

    `thinks`: the model's text beside its calls becomes notes for the answer; `of_site`: with the site's own tools.
    """

    prompt: StepName
    tools: tuple[str, ...]
    rounds: int
    thinks: bool = False
    of_site: bool = False


@dataclass(frozen=True)
class _Result:
    """The result of a call. `brief`: its text in the trace; `asks`: whether the visitor must give an argument."""

    text: str
    brief: str = ""
    asks: bool = False


class ToolLoop:
    """One run. Afterwards `library` has the sources of all searches, `said` the last text, `calls` the number of calls.

    `notes` are for the answer; `facts` are the notes that no model has written, which support sentences. `pending` is
    a call of a site's tool that waits for an argument from the visitor.
    """

    def __init__(self, means: StrategyContext, task: Task, way: Way, of_site: Sequence[Tool] = ()) -> None:
        self._means = means
        self._task = task
        self._way = way
        self._model = means.model(way.prompt, task)
        self.library = NumberedSources.of(task.retrieved.sources)
        self._tools = _tools(means, task, self.library, way, of_site)
        history = task.retrieved.request.history
        waiting = history[-1].pending if history else None
        self._waiting = waiting if waiting and waiting.tool in {tool.name for tool in of_site} else None
        self.pending: PendingCall | None = None
        self._native = task.tool_calls != "text"
        self._turns: list[ToolTurn] = []
        # The retrieve stage has already searched the question itself.
        self._done: Counter[tuple[str, ...]] = Counter([_key(ToolCall("search", json.dumps({"q": task.question})))])
        self._room = task.budget * ROOM
        self.notes: list[str] = []
        self.facts: list[str] = []
        self.said = ""
        self.calls = 0
        self.asks = False  # something is missing that only the visitor knows

    async def run(self) -> AsyncGenerator[Piece, None]:
        """Raises: ModelError. Retryable: a search failed."""
        ends = asyncio.get_running_loop().time() + self._task.left * TIME
        for _ in range(self._way.rounds):
            try:
                async with asyncio.timeout_at(ends):
                    turn, usage, asking = await self._ask()
            except TimeoutError:
                break
            yield usage
            yield asking
            self.said = turn.said
            self._turns.append(turn)
            if self._way.thinks and turn.said and not turn.lost:
                self.notes.append(shortened(turn.said))
            if not turn.calls and not turn.lost:
                return
            async with aclosing(self._answered(turn, ends)) as pieces:
                async for piece in pieces:
                    yield piece
            if self.asks:
                return
            if self._room < LEAST_ROOM or max(self._done.values()) > REPEATS:
                break
        self.notes.append(AT_LIMIT)

    async def _answered(self, turn: ToolTurn, ends: float) -> AsyncGenerator[Piece, None]:
        """Run the calls of a round and add their results, until an argument is missing that the visitor knows."""
        for call in turn.calls:
            self.calls += 1
            key = _key(call)
            self._done[key] += 1
            if self._done[key] > 1:
                turn.results.append(REPEATED)
                continue
            began, known = perf_counter(), len(self.library.all)
            try:
                async with asyncio.timeout_at(ends):
                    result = await self._call(call)
            except TimeoutError:
                result = _Result(TOO_LATE)
            turn.results.append(result.text)
            yield step(_KINDS.get(call.name, "tool"), _told(call), result.brief or result.text, began)
            if len(self.library.all) > known:
                yield self.library.event(self._task)
            if result.asks:
                self.asks = True
                return

    async def _ask(self) -> tuple[ToolTurn, Usage, Step]:
        """One round: by native tool calls, or by text for models without them."""
        began = perf_counter()
        specs = self._tools.specs
        turn = None
        if self._native:
            try:
                messages = [*self._opening(""), *native_messages(self._turns, self._task.fence)]
                completion = await self._model.complete(messages, max_tokens=CALL_TOKENS, tools=specs)
                said = shortened(completion.text.strip(), SAID_CHARS)
                turn = ToolTurn(said, self._identified(completion.calls[:CALLS]))
            except NoToolCalls:
                if self._task.tool_calls == "native":
                    raise
                self._native = False
        if turn is None:
            messages = [*self._opening(actions(specs)), *text_messages(self._turns, self._task.fence)]
            completion = await self._model.complete(messages, max_tokens=CALL_TOKENS)
            turn = spoken(completion, specs)
            turn.said = shortened(turn.said, SAID_CHARS)
        said = completion.text.strip() or " ".join(map(str, turn.calls))
        return turn, completion.usage, step("model", self._way.prompt, said, began)

    def _opening(self, told: str) -> tuple[ChatMessage, ...]:
        """The first messages. Worked examples are only for text: they would teach others to write calls as text."""
        shown = fenced(fit(self._task.retrieved.sources, self._task.budget), self._task.fence)
        values = {
            "rounds": str(self._way.rounds),
            "sources": shown or "(none)",
            "actions": told,
            "pending": _waits(self._waiting),
        }
        return asked(self._means, self._way.prompt, self._task, values, examples=bool(told))

    def _identified(self, calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
        """The calls with unique ids, by which results refer to them. Some servers require nine characters."""
        taken = {call.id for turn in self._turns for call in turn.calls} | {""}
        found: list[ToolCall] = []
        for call in calls:
            unique = replace(call, arguments=call.arguments[: ARGUMENT_CHARS + 1])
            if call.id in taken:
                unique = replace(unique, id=f"call{len(taken):05d}")
            taken.add(unique.id)
            found.append(unique)
        return tuple(found)

    async def _call(self, call: ToolCall) -> _Result:
        """The result of a call, or an error for the model. Raises: Retryable."""
        try:
            tool = self._tools.named(call.name)
            given = tool.read(call.arguments)
            if tool.title:
                given = self._completed(tool, given)
            said = await tool.call(given)
        except MissingSlots as err:
            slots = ", ".join(err.slots)
            if call.name in _LOOKS:
                return _Result(f"wrong call: {call.name}: missing: {slots}")
            if tool.title:
                self.pending = PendingCall(tool=tool.name, arguments=_json(err.given), missing=err.names)
                self.facts.append(slots)  # "Which zone, 1 or 2?" is no claim of the model
            return _Result(self._noted(call, f"the visitor must be asked for: {slots}"), asks=True)
        except BadCall as err:
            return _Result(f"wrong call: {err}")
        except ToolFailed as err:
            return _Result(self._noted(call, f"{FAILED} ({err})"))
        if tool.title:
            found = self._found(call, [as_source(tool, given, said.text, self._task.retrieved.request.lang)])
            return replace(found, brief=f"{found.brief} {said.text}")
        if said.sources:
            return self._found(call, said.sources)
        if call.name not in _LOOKS:
            self._noted(call, said.text)
            self.facts.append(said.text)
        self._room -= len(said.text)
        return _Result(said.text)

    def _completed(self, tool: Tool, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments, completed from the pending call. Raises: MissingSlots: some are still missing."""
        request, known = self._task.retrieved.request, ""
        if self._waiting is not None and self._waiting.tool == tool.name:
            known = self._waiting.arguments
            given = {**tool.read(known), **given}
        turns = [text for turn in request.history for text in (turn.question, turn.answer)]
        texts = [request.question, *turns, known, *(source.text for source in self.library.all), *self.facts]
        langs = (request.lang, *(source.lang for source in self.library.all), "en")
        made_up = unsaid(given, tool.spec.parameters, texts, langs)
        sure = {name: value for name, value in given.items() if name not in made_up}
        wanted = list(dict.fromkeys([*tool.missing(given), *made_up]))
        if wanted:
            raise MissingSlots(tool.in_words(wanted), wanted, sure)
        return sure

    def _noted(self, call: ToolCall, text: str) -> str:
        self.notes.append(f"{call.name}({call.arguments}): {text}")
        return text

    def _found(self, call: ToolCall, sources: Sequence[Source]) -> _Result:
        numbered = self.library.add(sources)
        most = self._task.budget if call.name == "page" else FOUND_CHARS
        shown = fenced(fit(numbered, min(most, max(self._room, LEAST_ROOM))), self._task.fence)
        self._room -= len(shown)
        return _Result(shown, " ".join(f"[{source.n}]" for source in numbered))


def _tools(means: StrategyContext, task: Task, library: NumberedSources, way: Way, of_site: Sequence[Tool]) -> Tools:
    calendar, pages = Calendar(task.now), Pages(means.finder, task.retrieved, lambda: library.all)
    every = (pages.search, pages.lookup, pages.page, calendar.date_calculator, calendar.opening_hours)
    return Tools((function for function in every if function.__name__ in way.tools), of_site if way.of_site else ())


def _waits(call: PendingCall | None) -> str:
    return f"{call.tool}({call.arguments}), asked for: {', '.join(call.missing)}" if call else ""


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _key(call: ToolCall) -> tuple[str, ...]:
    """A key that is equal for calls with the same result: ignoring case, endings and the order of arguments."""
    if (words := _only(call)) is not None:
        return call.name, *(stems(words) or [words])
    try:
        return call.name, json.dumps(json.loads(call.arguments or "{}"), sort_keys=True)
    except (ValueError, RecursionError):
        return call.name, call.arguments


def _told(call: ToolCall) -> str:
    return _only(call) or str(call)


def _only(call: ToolCall) -> str | None:
    """The only argument of a call, if it is a text."""
    try:
        given = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return None
    value = next(iter(given.values())) if isinstance(given, dict) and len(given) == 1 else None
    return value if isinstance(value, str) and call.name in _LOOKS else None
