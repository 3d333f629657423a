"""Chooses model and parameters for a step of a site. All steps with the same model share its connection.

site, step ─▶ steps of the site ─▶ steps of all sites ─▶ PAGEWIRE_LLM_* ─▶ model, temperature, thinking tokens
                                                                └▶ StepChat: its limit, its usage, and its record
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import NamedTuple

from adapters.llm.guarded import FAILURES, GuardedChat
from adapters.llm.openai_chat import TEMPERATURE, OpenAIChat
from adapters.llm.settings import ModelSettings
from adapters.llm.written import StreamingChat
from pipelines.query.model_calls import start_call
from pipelines.query.ports import ChatModel, Delta, ToolSpec
from pipelines.query.settings import QuerySettings
from pipelines.query.token_budget import TokenBudget, estimated, written
from pipelines.runtime.errors import PagewireError
from pipelines.runtime.settings import ROOMY, StepName, StepSettings
from prompts.loader import ChatMessage
from schemas.answer import Usage


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
