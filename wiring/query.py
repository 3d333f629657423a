"""The query stages, put together from settings: three stream processors that share one set of clients."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from adapters.elastic.bundle import Elastic
from adapters.elastic.examples import ElasticExamples
from adapters.embedders.registry import Models
from adapters.kafka.log import LogReader, LogTail
from adapters.reranker import make_reranker
from pipelines.query.answer.answering import Answering
from pipelines.query.answer.clock import clock_of
from pipelines.query.answer.handler import answer_handler
from pipelines.query.answer.stops import Stops
from pipelines.query.answer.strategies.base import StrategyContext
from pipelines.query.answer.strategies.courtesy import Courtesy
from pipelines.query.answer.strategies.finder import PageFinder
from pipelines.query.answer.strategies.registry import strategies
from pipelines.query.giving_up import apology, asked, impatient, rephrased, retrieved
from pipelines.query.rephrase.examples import Examples
from pipelines.query.rephrase.handler import rephrase_handler
from pipelines.query.rephrase.rewrite import Rewriter
from pipelines.query.retrieve.handler import retrieve_handler
from pipelines.query.retrieve.search import Searcher
from pipelines.query.site_prompts import SitePrompts
from pipelines.query.translate import Translator
from pipelines.runtime.stage import Stage
from prompts.loader import load
from schemas.topics import ANSWERS, REPHRASED, REQUESTS, RETRIEVED, STOPS
from wiring.rehearsal import rehearse_searches, rehearse_words
from wiring.settings import Settings

if TYPE_CHECKING:
    from adapters.llm.guarded import GuardedChat

AT_ONCE = 64  # answers a partition: they wait for the model most of the time
LAST_WORDS = 15.0  # seconds to quote after the deadline struck, and to be confirmed by the broker


def chat_model(settings: Settings, name: str | None = None) -> GuardedChat | None:
    """The configured model, or None: answers quote the pages.

    Args:
        name: of another one on the same server; what happens when it fails is the same.
    """
    if settings.llm_model is None:
        return None
    # The client takes a second to load, which most instances never need.
    from adapters.llm.guarded import GuardedChat
    from adapters.llm.openai_chat import OpenAIChat

    def guarded(name: str, fallback: GuardedChat | None = None) -> GuardedChat:
        return GuardedChat(
            OpenAIChat.named(name, settings),
            name,
            at_once=settings.llm_at_once,
            failures=settings.llm_failures,
            rest=settings.llm_rest,
            fallback=fallback,
        )

    fallback = guarded(settings.llm_fallback_model) if settings.llm_fallback_model else None
    return guarded(name or settings.llm_model, fallback)


def rephrase_stage(settings: Settings, elastic: Elastic, models: Models) -> Stage:
    log, site_prompts = LogReader(settings, ANSWERS), SitePrompts.of_settings(settings)
    model = chat_model(settings, settings.llm_small_model)
    rewriter = None
    if model is not None:
        store = ElasticExamples(elastic.es, elastic.indexes)
        rewriter = Rewriter(model, Examples(site_prompts, store, models, settings.history_messages))
    handler = rephrase_handler(settings, site_prompts, rewriter)

    async def setup() -> None:
        if rewriter is not None:  # without one there is nothing to compare
            await models.warm()
        await asyncio.to_thread(rehearse_words, settings.spoken)

    return Stage(
        name="rephrase",
        routes={REQUESTS: impatient(handler, asked, settings, site_prompts, log)},
        on_dead=apology(asked, site_prompts, log),
        setup=setup,
        teardown=partial(_close, log, model),
    )


def retrieve_stage(settings: Settings, elastic: Elastic, models: Models) -> Stage:
    log, site_prompts = LogReader(settings, ANSWERS), SitePrompts.of_settings(settings)
    searcher = Searcher(elastic.search, models, settings)
    reranker = make_reranker(settings.reranker, settings.nice)
    writes = settings.llm_model is not None
    handler = retrieve_handler(settings, searcher, elastic.search, reranker, writes=writes)

    async def setup() -> None:
        if reranker is not None:
            await reranker.start()
        await models.warm()
        await asyncio.to_thread(rehearse_words, settings.spoken)
        await rehearse_searches(searcher, settings.sites)

    async def teardown() -> None:
        await log.aclose()
        if reranker is not None:
            await reranker.aclose()

    return Stage(
        name="retrieve",
        routes={REPHRASED: impatient(handler, rephrased, settings, site_prompts, log)},
        on_dead=apology(rephrased, site_prompts, log),
        setup=setup,
        teardown=teardown,
    )


def answer_stage(settings: Settings, elastic: Elastic, models: Models) -> Stage:
    log, site_prompts = LogReader(settings, ANSWERS), SitePrompts.of_settings(settings)
    stop_log = LogReader(settings, STOPS)
    stops = Stops(stop_log, partial(LogTail, settings, STOPS))
    model = chat_model(settings)
    finder = PageFinder(Searcher(elastic.search, models, settings), elastic.search, settings)
    small = chat_model(settings, settings.llm_small_model) if settings.llm_small_model else model
    means = StrategyContext(model, site_prompts, finder) if model else None
    answering = Answering(
        settings,
        site_prompts,
        strategies(means) if means else {},
        Translator(small, load("translate")) if small else None,
        Courtesy(means) if means else None,
        clock_of(settings.clock),
    )

    async def setup() -> None:
        await models.warm()
        await asyncio.to_thread(rehearse_words, settings.spoken)
        await stops.start()

    async def teardown() -> None:
        await stops.aclose()
        await stop_log.aclose()
        await _close(log, model)
        if small is not None and small is not model:
            await small.aclose()

    handler = answer_handler(answering, models, log, stops)
    return Stage(
        name="answer",
        routes={RETRIEVED: impatient(handler, retrieved, settings, site_prompts, log)},
        window=AT_ONCE,
        # An answer ends itself at the question's deadline; what is cut off begins again from the start.
        try_timeout=settings.question_timeout + LAST_WORDS,
        on_dead=apology(retrieved, site_prompts, log),
        setup=setup,
        teardown=teardown,
    )


async def _close(log: LogReader, model: GuardedChat | None) -> None:
    await log.aclose()
    if model is not None:
        await model.aclose()
