"""The model that judges answers, in evaluations and in the stage `judge`, put together from settings."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from adapters.elastic.bundle import Elastic
from adapters.elastic.outcomes import ElasticOutcomes
from adapters.kafka.log import KafkaLogReader
from pipelines.evaluate.judged.handler import AGAIN, InLine, Named, begin_counting, judge_handler
from pipelines.evaluate.judged.judge import JudgeModel
from pipelines.evaluate.judged.sampling import SampleAllowance
from pipelines.runtime.errors import SettingsError
from pipelines.runtime.stage import Stage
from schemas.topics import ANSWERS, OUTCOMES, VERDICTS
from wiring.settings import Settings

if TYPE_CHECKING:
    from adapters.llm.guarded import GuardedChat

TRY = 600.0  # seconds for a call of a model, which may be slow; waiting in line does not count


@asynccontextmanager
async def judge_model(settings: Settings, name: str) -> AsyncIterator[JudgeModel]:
    """A model of the configured server, behind a queue and a circuit breaker of its own."""
    guarded = _guarded(settings, name)
    try:
        yield guarded
    finally:
        await guarded.aclose()


def judge_of_samples(settings: Settings) -> str | None:
    """The model that judges answers while the system runs; None: no site uses it. Raises: SettingsError: no model."""
    sampled = [name for name, site in settings.sites.items() if site.judging.share]
    if not sampled:
        return None
    if settings.judge_of_answers is None:
        raise SettingsError(f"sites.{sampled[0]}.judging.share: there is no model: set judging_model or llm_model")
    return settings.judge_of_answers


def judge_stage(settings: Settings, elastic: Elastic, again: float = AGAIN) -> Stage:
    """The stage `judge`; if no site uses it, it only reads outcomes. Raises: SettingsError: no model."""
    answers, verdicts = KafkaLogReader(settings, ANSWERS), KafkaLogReader(settings, VERDICTS)
    forgotten = ElasticOutcomes(elastic.es, elastic.indexes).forgotten
    judge = judge_of_samples(settings)
    model = _guarded(settings, judge) if judge is not None else None
    named = Named(judge, InLine(model)) if judge is not None and model is not None else None

    async def setup() -> None:
        begin_counting(settings.sites)

    async def teardown() -> None:
        await answers.aclose()
        await verdicts.aclose()
        if model is not None:
            await model.aclose()

    return Stage(
        name="judge",
        routes={
            OUTCOMES: judge_handler(settings.sites, named, answers, forgotten, SampleAllowance(verdicts), again=again)
        },
        try_timeout=TRY,
        setup=setup,
        teardown=teardown,
    )


def _guarded(settings: Settings, name: str) -> GuardedChat:
    # The client takes a second to load, which is not needed without a judge.
    from adapters.llm.guarded import GuardedChat
    from adapters.llm.openai_chat import OpenAIChat

    return GuardedChat(OpenAIChat.named(name, settings), name)
