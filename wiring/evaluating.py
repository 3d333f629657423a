"""The model that judges answers in evaluations, put together from settings."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pipelines.evaluate.judged.ports import JudgeModel
from wiring.settings import Settings


@asynccontextmanager
async def judge_model(settings: Settings, name: str) -> AsyncIterator[JudgeModel]:
    """A model of the configured server, behind a queue and a circuit breaker of its own."""
    # The client takes a second to load, which evaluations without a judge do not need.
    from adapters.llm.guarded import GuardedChat
    from adapters.llm.openai_chat import OpenAIChat

    guarded = GuardedChat(
        OpenAIChat.named(name, settings),
        name,
        at_once=settings.llm_at_once,
        failures=settings.llm_failures,
        rest=settings.llm_rest,
    )
    try:
        yield guarded
    finally:
        await guarded.aclose()
