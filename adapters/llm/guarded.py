"""Guarded: a chat model behind a queue, a circuit breaker and, where one is configured, another model.

    question ─▶ at most so many at once ─▶ breaker closed? ─▶ model
                                              │ open, or the model fails before its first word
                                              └─▶ fallback model, guarded likewise; else the failure

While the breaker is open nobody waits for a server that is away: the answer comes from the fallback, or is quoted.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Protocol

import structlog
from purgatory import AsyncCircuitBreakerFactory
from purgatory.domain.model import OpenedState

from pipelines.query.ports import (
    ChatModel,
    Completion,
    ContentFiltered,
    ContextTooLong,
    Delta,
    ModelDown,
    ModelError,
    ModelThoughtOut,
    NoToolCalls,
    ToolSpec,
)
from prompts.loader import ChatMessage
from schemas.answer import Usage

log = structlog.get_logger(__name__)

# What another model would do as well, or must not be asked to do; without tools this one may answer.
_ITS_OWN = (ContentFiltered, ContextTooLong, ModelThoughtOut, NoToolCalls)


class ServedModel(ChatModel, Protocol):
    """A model with a connection."""

    async def aclose(self) -> None: ...


class GuardedChat:
    """One model; shared by all answers of a process.

    Args:
        name: in logs.
        at_once: calls that may be open; the others wait, which counts as time of their answer.
        failures: in a row (the server away, silent or cutting off) until it is left alone.
        rest: seconds it is left alone for; then one call tries it.
        fallback: asked where this model fails before its first word.
        like: the same model with other parameters, whose queue and breaker are this one's, too.
    """

    def __init__(
        self,
        model: ServedModel,
        name: str,
        *,
        at_once: int,
        failures: int,
        rest: float,
        fallback: ServedModel | None = None,
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
        """Its own connection; whoever has made the fallback closes that."""
        await self._model.aclose()

    async def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_tokens: int | None = None,
        tools: Sequence[ToolSpec] = (),
    ) -> Completion:
        """Raises: as `stream`."""
        text, last = "", Delta()
        async with aclosing(self.stream(messages, max_tokens=max_tokens, tools=tools)) as deltas:
            async for delta in deltas:
                text += delta.text
                last = delta
        return Completion(text, last.usage or Usage(), last.calls, last.cut)

    async def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_tokens: int | None = None,
        tools: Sequence[ToolSpec] = (),
    ) -> AsyncGenerator[Delta, None]:
        """Raises: ModelError, that of the fallback where both fail."""
        begun = False
        try:
            async with aclosing(self._guarded(messages, max_tokens=max_tokens, tools=tools)) as deltas:
                async for delta in deltas:
                    begun = True
                    yield delta
                return
        except ModelError as err:
            if begun or self._fallback is None or isinstance(err, _ITS_OWN):
                raise
            log.warning("asking the fallback model", model=self._name, code=err.code)
        async with aclosing(self._fallback.stream(messages, max_tokens=max_tokens, tools=tools)) as deltas:
            async for delta in deltas:
                yield delta

    async def _guarded(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_tokens: int | None,
        tools: Sequence[ToolSpec],
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
