"""The query stages, put together from settings: three stream processors that share one set of clients."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from adapters.elastic.bundle import Elastic
from adapters.embedders.registry import Models
from adapters.kafka_log import LogReader
from pipelines.query import agents
from pipelines.query.answering import Answering
from pipelines.query.language import Phrases
from pipelines.query.search import Searcher
from pipelines.runtime.settings import Settings
from pipelines.runtime.stage import Stage
from prompts.loader import load
from schemas.topics import ANSWERS, REPHRASED, REQUESTS, RETRIEVED

if TYPE_CHECKING:
    from adapters.llm import OpenAIChat


def chat_model(settings: Settings) -> OpenAIChat | None:
    """The configured model, or None: answers quote the pages."""
    if settings.llm_model is None:
        return None
    from adapters.llm import OpenAIChat  # its client takes a second to load, which most instances never need

    return OpenAIChat.of(settings)


def rephrase_stage(settings: Settings) -> Stage:
    log, phrases = LogReader(settings, ANSWERS), Phrases.load()
    model = chat_model(settings)

    return Stage(
        name="rephrase",
        routes={REQUESTS: agents.rephrase_handler(settings, load("rephrase"), phrases, model)},
        on_dead=agents.apology(agents.asked, phrases, log),
        teardown=partial(_close, log, model),
    )


def retrieve_stage(settings: Settings, elastic: Elastic, models: Models) -> Stage:
    log = LogReader(settings, ANSWERS)
    searcher = Searcher(elastic.search, models, settings)
    return Stage(
        name="retrieve",
        routes={REPHRASED: agents.retrieve_handler(settings, searcher, elastic.search)},
        on_dead=agents.apology(agents.rephrased, Phrases.load(), log),
        setup=models.warm,
        teardown=log.aclose,
    )


def answer_stage(settings: Settings, models: Models) -> Stage:
    log, phrases = LogReader(settings, ANSWERS), Phrases.load()
    model = chat_model(settings)
    answering = Answering(settings, load("answer"), phrases, model)

    return Stage(
        name="answer",
        routes={RETRIEVED: agents.answer_handler(answering, models, log)},
        on_dead=agents.apology(agents.retrieved, phrases, log),
        setup=models.warm,
        teardown=partial(_close, log, model),
    )


async def _close(log: LogReader, model: OpenAIChat | None) -> None:
    await log.aclose()
    if model is not None:
        await model.aclose()
