"""Chooses model and parameters for a step of a site. All steps with the same model share its connection.

site, step ─▶ steps of the site ─▶ steps of all sites ─▶ PAGEWIRE_LLM_* ─▶ model, temperature, thinking tokens
                                                                └▶ StepChat: its limit, its usage, and its record

A chat model behind a queue and a circuit breaker, with an optional fallback model.

    question ─▶ limit of parallel calls ─▶ breaker closed? ─▶ model
                                              │ open, or the model fails before its first word
                                              └─▶ fallback model, guarded as well; else the failure

While the breaker is open, no call waits for a server that is down: the fallback answers, or pages are quoted.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import NamedTuple

import structlog
from purgatory import AsyncCircuitBreakerFactory
from purgatory.domain.model import OpenedState

from adapters.llm.openai_chat import TEMPERATURE, OpenAIChat
from adapters.llm.settings import ModelSettings
from adapters.llm.written import StreamingChat
from pipelines.query.model_calls import start_call
from pipelines.query.ports import (
    ChatModel,
    ContentFiltered,
    ContextTooLong,
    Delta,
    ModelDown,
    ModelError,
    ModelThoughtTooLong,
    NoToolCalls,
    ToolSpec,
)
from pipelines.query.settings import QuerySettings
from pipelines.query.token_budget import TokenBudget, estimated, written
from pipelines.runtime.errors import PagewireError
from pipelines.runtime.settings import ROOMY, StepName, StepSettings
from prompts.loader import ChatMessage
from schemas.answer import Usage

log = structlog.get_logger(__name__)

# Errors without a fallback: it would fail as well, must not get the question, or this model can answer without tools.
_NO_FALLBACK = (ContentFiltered, ContextTooLong, ModelThoughtTooLong, NoToolCalls)


FAILURES = 10  # in a row, after which a model is paused
REST = 30.0  # seconds of that pause
AT_ONCE = 64  # calls of one process to a model: more than its stages make, few enough connections for any server


class GuardedChat(StreamingChat):
    """One model, shared by all answers of a process.

    Args:
        name: for logs.
        at_once: parallel calls; further ones wait, and the wait counts towards the answer's deadline.
        failures: failures in a row (server down, silent, or breaking off) that open the breaker.
        rest: seconds that the breaker is open; then one call tries the model.
        fallback: used when this model fails before its first word.
        like: the same model with other parameters; shares its queue and breaker.
    """

    def __init__(
        self,
        model: OpenAIChat | GuardedChat,
        name: str,
        *,
        at_once: int = AT_ONCE,
        failures: int = FAILURES,
        rest: float = REST,
        fallback: GuardedChat | None = None,
        like: GuardedChat | None = None,
    ) -> None:
        self._model = model
        self._name = name
        self._room: asyncio.Semaphore
        self._breakers: AsyncCircuitBreakerFactory
        if like is not None:
            self._room, self._breakers = like._room, like._breakers
        else:
            self._room = asyncio.Semaphore(at_once)
            self._breakers = AsyncCircuitBreakerFactory(
                default_threshold=failures, default_ttl=rest, exclude=[(BaseException, _no_failure_of_the_server)]
            )
        self._fallback = fallback

    @property
    def name(self) -> str:
        return self._name

    async def aclose(self) -> None:
        """Close this model's connection. The fallback's maker closes the fallback."""
        await self._model.aclose()

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None, tools: Sequence[ToolSpec] = ()
    ) -> AsyncGenerator[Delta, None]:
        """Raises: ModelError; the fallback's where both fail."""
        begun = False
        try:
            async with aclosing(self._guarded(messages, max_tokens=max_tokens, tools=tools)) as deltas:
                async for delta in deltas:
                    begun = True
                    yield delta
                return
        except ModelError as err:
            if begun or self._fallback is None or isinstance(err, _NO_FALLBACK):
                raise
            log.warning("asking the fallback model", model=self._name, code=err.code)
        async with aclosing(self._fallback.stream(messages, max_tokens=max_tokens, tools=tools)) as deltas:
            async for delta in deltas:
                yield delta

    async def _guarded(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None, tools: Sequence[ToolSpec]
    ) -> AsyncGenerator[Delta, None]:
        breaker = await self._breakers.get_breaker(self._name)
        async with self._room:
            try:
                async with (
                    breaker,
                    aclosing(self._model.stream(messages, max_tokens=max_tokens, tools=tools)) as deltas,
                ):
                    async for delta in deltas:
                        yield delta
            except OpenedState as err:
                raise ModelDown(f"{self._name}: left alone after failing again and again") from err


def _no_failure_of_the_server(err: BaseException) -> bool:
    return not isinstance(err, ModelDown)


class _Parameters(NamedTuple):
    model: str
    temperature: float
    thinking: int


class ChatRegistry:
    """Chat models by site and step. One per stage.

    Args:
        steps: the settings of steps, for all sites and by site.
        failures: as of GuardedChat.
    """

    def __init__(
        self, settings: ModelSettings, steps: QuerySettings, token_budget: TokenBudget, failures: int = FAILURES
    ) -> None:
        assert settings.llm_model, "without a model there is none to choose"
        self._default = settings.llm_model
        self._settings = settings
        self._steps = steps
        self._token_budget = token_budget
        self._failures = failures
        self._made: list[GuardedChat] = []
        self._guarded: dict[_Parameters, GuardedChat] = {}

    async def aclose(self) -> None:
        for model in self._made:
            await model.aclose()

    def of(self, site: str, step: StepName, question: str = "", own: StepSettings | None = None) -> ChatModel:
        """The model of a step.

        Args:
            question: the request's id, by which tokens are counted.
            own: overrides the step's settings. Callers must choose from few models and temperatures, since each keeps
                a connection of its own.
        """
        wanted, settings = (own or StepSettings()).over(self._steps.step(site, step)), self._settings
        name = wanted.model or self._default
        temperature = TEMPERATURE if wanted.temperature is None else wanted.temperature
        thinking = settings.llm_thinking_tokens if wanted.thinking_tokens is None else wanted.thinking_tokens
        model = self._shared(_Parameters(name, temperature, thinking))
        limit = None if step in ROOMY else wanted.max_tokens
        return StepChat(model, self._token_budget, site, step, question, limit)

    def _shared(self, wanted: _Parameters) -> GuardedChat:
        if wanted not in self._guarded:
            fallback, other = self._settings.llm_fallback_model, None
            if fallback is not None and fallback != wanted.model:
                other = self._guard(wanted._replace(model=fallback), None)
            self._guarded[wanted] = self._guard(wanted, other)
        return self._guarded[wanted]

    def _guard(self, wanted: _Parameters, fallback: GuardedChat | None) -> GuardedChat:
        served = OpenAIChat.named(
            wanted.model, self._settings, temperature=wanted.temperature, thinking=wanted.thinking
        )
        made = GuardedChat(
            served,
            wanted.model,
            failures=self._failures,
            fallback=fallback,
            like=next((known for known in self._made if known.name == wanted.model), None),
        )
        self._made.append(made)
        return made


class StepChat(StreamingChat):
    """A model for one step of a site.

    Args:
        question: the request's id.
        limit: most tokens of an answer, in place of the caller's `max_tokens`.
    """

    def __init__(
        self,
        model: ChatModel,
        token_budget: TokenBudget,
        site: str,
        step: StepName,
        question: str = "",
        limit: int | None = None,
    ) -> None:
        self._model = model
        self._token_budget = token_budget
        self._site = site
        self._step = step
        self._question = question
        self._limit = limit

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None, tools: Sequence[ToolSpec] = ()
    ) -> AsyncGenerator[Delta, None]:
        """Raises: ModelError; TokensSpent, QuestionSpent: before the model is asked."""
        reading = estimated(messages, tools)
        room = self._token_budget.open(self._site, self._question, reading, self._limit or max_tokens)
        used, said, began, call = Usage(), 0, False, start_call(self._step, messages)

        def counted() -> Usage:
            if not began or used.prompt_tokens or used.completion_tokens:
                return used
            # An interrupted call, or a server that sends no usage.
            return Usage(model=used.model, prompt_tokens=reading, completion_tokens=written(said))

        try:
            async with aclosing(self._model.stream(messages, max_tokens=room, tools=tools)) as deltas:
                async for delta in deltas:
                    began = True
                    call.add(delta.text, delta.calls)
                    said += len(delta.text.encode()) + sum(len(call.arguments) for call in delta.calls)
                    used = delta.usage or used
                    yield delta if delta.usage is None else replace(delta, usage=counted())
        except PagewireError as err:
            call.failed = err.code
            raise
        finally:
            call.model = used.model
            self._token_budget.close(self._site, self._step, self._question, reading, counted())
