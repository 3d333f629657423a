"""A chat model behind a queue and a circuit breaker, with an optional fallback model.

    question ─▶ limit of parallel calls ─▶ breaker closed? ─▶ model
                                              │ open, or the model fails before its first word
                                              └─▶ fallback model, guarded as well; else the failure

While the breaker is open, no call waits for a server that is down: the fallback answers, or pages are quoted.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import structlog
from purgatory import AsyncCircuitBreakerFactory
from purgatory.domain.model import OpenedState

from adapters.llm.openai_chat import OpenAIChat
from adapters.llm.written import StreamingChat
from pipelines.query.ports import (
    ContentFiltered,
    ContextTooLong,
    Delta,
    ModelDown,
    ModelError,
    ModelThoughtTooLong,
    NoToolCalls,
    ToolSpec,
)
from prompts.loader import ChatMessage

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
