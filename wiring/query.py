"""The query stages, put together from settings: four stream processors that share one set of clients."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from adapters.elastic.bundle import Elastic
from adapters.elastic.client import ElasticsearchDown
from adapters.elastic.conversations import ElasticConversations, ElasticHandovers
from adapters.elastic.outcomes import ElasticOutcomes
from adapters.elastic.system_index import ElasticAuditLog, ElasticExamples, ElasticRuns
from adapters.elastic.texts import ElasticTexts
from adapters.embedders.registry import Models
from adapters.kafka.log import KafkaLogReader, KafkaLogTail
from adapters.reranker import make_reranker
from connectors.cms.fetching import SafeFetch
from connectors.handover import couriers
from pipelines.conversations.handovers import SEND_TIMEOUT, Deliveries
from pipelines.operate.chat_switches import ChatSwitches
from pipelines.query.answer.answering import Answering
from pipelines.query.answer.clock import clock_of
from pipelines.query.answer.handler import answer_handler
from pipelines.query.answer.judging import Entails, Judge, ModelJudge, RerankerJudge
from pipelines.query.answer.stops import Stops
from pipelines.query.answer.strategies.base import StrategyContext
from pipelines.query.answer.strategies.courtesy import Courtesy
from pipelines.query.answer.strategies.finder import PageFinder
from pipelines.query.answer.strategies.registry import strategies
from pipelines.query.examples import Examples
from pipelines.query.extractive.courtesy import recognized
from pipelines.query.extractive.days import asked_day
from pipelines.query.giving_up import apology, while_chat_on, with_deadline
from pipelines.query.live.corrections import SiteCorrections
from pipelines.query.live.live_texts import LiveTexts, Taker
from pipelines.query.live.site_privacy import SitePrivacy
from pipelines.query.live.site_prompts import SitePrompts
from pipelines.query.live.tuning import SiteTuning
from pipelines.query.log.handler import log_handler, verdict_handler
from pipelines.query.log.retention import Retention
from pipelines.query.masks import Masks
from pipelines.query.outcomes import Outcomes, StageInputType
from pipelines.query.ports import ChatModels
from pipelines.query.rephrase.handler import rephrase_handler
from pipelines.query.rephrase.rewrite import Rewriter
from pipelines.query.retrieve.corrected import Corrector
from pipelines.query.retrieve.handler import retrieve_handler
from pipelines.query.search.ports import Reranker
from pipelines.query.search.search import Searcher
from pipelines.query.token_budget import TokenBudget
from pipelines.query.translate import Translator
from pipelines.runtime.errors import PagewireError, SettingsError
from pipelines.runtime.settings import JudgeName
from pipelines.runtime.stage import Handler, Stage
from prompts.loader import load
from schemas.query import Question, Rephrased, Retrieved
from schemas.topics import ANSWERS, OUTCOMES, REPHRASED, REQUESTS, RETRIEVED, STOPS, VERDICTS, Topic
from text import words
from text.dictionary import in_dictionary
from text.language import identified, spoken
from wiring.index_search import SiteIndexes
from wiring.settings import Settings
from wiring.tools import site_tools, tools_fetch

if TYPE_CHECKING:
    from adapters.llm.registry import ChatRegistry

# Answers that one worker writes at once, of all its partitions together: they wait for the model most of the time.
ANSWERS_AT_ONCE = 256
REHEARSAL = 5.0  # seconds for the searches of all sites; a worker may start while Elasticsearch is busy
LAST_WORDS = 15.0  # seconds after the deadline to quote the pages, and for the broker's confirmation
# Seconds of processor time between two awaits, which block all visitors of the process. A question needs a tenth of it
# at most.
STEP_LIMIT = 2.0


def chat_models(settings: Settings, token_budget: TokenBudget) -> ChatRegistry | None:
    """The configured models, or None: answers quote the pages."""
    if settings.llm_model is None:
        return None
    # Imported here: the client takes a second to load, and many instances never need it.
    from adapters.llm.registry import ChatRegistry

    return ChatRegistry(settings, settings, token_budget)


class _Answering:
    """What the stages from a question to its answer have in common."""

    def __init__(self, settings: Settings, elastic: Elastic, switch: ChatSwitches, *takers: Taker) -> None:
        """`takers`: receive the sites' live texts, besides prompts and privacy."""
        self._settings, self._switch = settings, switch
        self.log, self.site_prompts = KafkaLogReader(settings, ANSWERS), SitePrompts.of_settings(settings)
        self.privacy, store = SitePrivacy(settings.sites), ElasticTexts(elastic.es, elastic.indexes)
        self.live_texts = LiveTexts(store, self.site_prompts.take, self.privacy.take, *takers)
        self.outcomes = Outcomes(settings, self.privacy)

    def stage(self, name: str, topic: Topic, handler: Handler, kind: StageInputType, **more: Any) -> Stage:
        """The stage; its handler has a deadline, and checks whether the site's chat is on."""
        ends = self.site_prompts, self.log, self.outcomes
        punctual = with_deadline(handler, kind, *ends)
        return Stage(
            name=name,
            routes={topic: while_chat_on(punctual, kind, self._switch.went_off, *ends)},
            patient=False,
            step_limit=STEP_LIMIT,
            on_dead=apology(kind, *ends),
            **more,
        )

    async def start(self) -> None:
        await asyncio.to_thread(rehearse_words, self._settings.spoken)
        await self.live_texts.start()

    async def aclose(self) -> None:
        await self.live_texts.aclose()
        await self.log.aclose()


def rephrase_stage(
    settings: Settings, elastic: Elastic, models: Models, token_budget: TokenBudget, switch: ChatSwitches
) -> Stage:
    tuning = SiteTuning(settings)
    common = _Answering(settings, elastic, switch, tuning.take)
    chat = chat_models(settings, token_budget)
    rewriter = None
    if chat is not None:
        store = ElasticExamples(elastic.es, elastic.indexes)
        examples = Examples(common.site_prompts, store.of_site, models)
        rewriter = Rewriter(chat, examples, settings.llm_timeout)

    async def setup() -> None:
        if rewriter is not None:  # without one there are no examples to compare
            await models.warm()
        await common.start()

    async def teardown() -> None:
        await common.aclose()
        if chat is not None:
            await chat.aclose()

    handler = rephrase_handler(settings, common.site_prompts, rewriter, tuning, common.privacy)
    return common.stage("rephrase", REQUESTS, handler, Question, setup=setup, teardown=teardown)


def retrieve_stage(settings: Settings, elastic: Elastic, models: Models, switch: ChatSwitches) -> Stage:
    corrections = SiteCorrections()
    common = _Answering(settings, elastic, switch, corrections.take)
    searcher = Searcher(elastic.search, models, settings, SiteIndexes(elastic, models).of)
    reranker = make_reranker(settings.reranker, settings.nice)
    handler = retrieve_handler(
        settings,
        searcher,
        elastic.search,
        reranker,
        writes=settings.llm_model is not None,
        site_prompts=common.site_prompts,
        corrector=Corrector(corrections),
    )

    async def setup() -> None:
        if reranker is not None:
            await reranker.start()
        await models.warm()
        await common.start()  # its thread reads the words that a search would else read on the event loop
        await rehearse_searches(searcher, settings.sites)

    async def teardown() -> None:
        await common.aclose()
        if reranker is not None:
            await reranker.aclose()

    return common.stage("retrieve", REPHRASED, handler, Rephrased, setup=setup, teardown=teardown)


def answer_stage(
    settings: Settings, elastic: Elastic, models: Models, token_budget: TokenBudget, switch: ChatSwitches
) -> Stage:
    common = _Answering(settings, elastic, switch)
    site_prompts = common.site_prompts
    stop_log = KafkaLogReader(settings, STOPS)
    stops = Stops(stop_log, partial(KafkaLogTail, settings, STOPS))
    chat = chat_models(settings, token_budget)
    searcher = Searcher(elastic.search, models, settings, SiteIndexes(elastic, models).of)
    finder = PageFinder(searcher, elastic.search, settings, site_prompts)
    reranker = make_reranker(settings.reranker, settings.nice) if "reranker" in judging(settings) else None
    fetch = tools_fetch(settings)
    tools = site_tools(settings, fetch)
    judging_by = judges(settings, chat, reranker, site_prompts)
    means = StrategyContext(chat, site_prompts, finder, judging_by, tools.of) if chat else None
    answering = Answering(
        settings,
        site_prompts,
        strategies(means) if means else {},
        Translator(chat, load("translate")) if chat else None,
        Courtesy(means) if means else None,
        clock_of(settings.home),
        Examples(site_prompts, ElasticExamples(elastic.es, elastic.indexes).of_site, models) if means else None,
        token_budget,
    )

    async def setup() -> None:
        if reranker is not None:
            await reranker.start()
        if chat is not None:  # else nothing is embedded here, and no tool is called
            await models.warm()
            await tools.start()
        await stops.start()
        await common.start()

    async def teardown() -> None:
        for one in (reranker, stops, stop_log, fetch, common, chat):
            if one is not None:
                await one.aclose()

    return common.stage(
        "answer",
        RETRIEVED,
        answer_handler(answering, common.log, stops, common.outcomes),
        Retrieved,
        at_once=ANSWERS_AT_ONCE,
        # An answer ends itself at the question's deadline; a cancelled one starts again from the beginning.
        try_timeout=settings.question_timeout + LAST_WORDS,
        setup=setup,
        teardown=teardown,
    )


def log_stage(settings: Settings, elastic: Elastic) -> Stage:
    store = ElasticOutcomes(elastic.es, elastic.indexes)
    conversations = ElasticConversations(elastic.es, elastic.indexes)
    audit_log = ElasticAuditLog(elastic.es, elastic.indexes)
    runs = ElasticRuns(elastic.es, elastic.indexes)
    days = settings.audit_log_days
    texts, privacy = ElasticTexts(elastic.es, elastic.indexes), SitePrivacy(settings.sites)
    handovers = ElasticHandovers(elastic.es, elastic.indexes)
    retention = Retention(
        settings.sites, store, conversations, runs, handovers, elastic.time, audit_log.expire, days, texts
    )
    fetch = SafeFetch(settings.fetch_allow, timeout=SEND_TIMEOUT)
    to_people = {name: (site.handover, site.title or name) for name, site in settings.sites.items() if site.handover}
    delivering = {name: each.deliver for name, each in couriers(to_people, fetch).items()}
    deliveries = Deliveries(handovers, delivering, elastic.time, settings.label)
    live_texts, masks = LiveTexts(texts, privacy.take), Masks(settings.sites, privacy)

    def keeping() -> Masks:
        if not live_texts.seen:
            raise ElasticsearchDown("what the sites keep of their visitors could not be read yet")
        return masks

    async def setup() -> None:
        await live_texts.start()
        await retention.start()
        await deliveries.start()

    async def teardown() -> None:
        for one in (deliveries, fetch, retention, live_texts):
            await one.aclose()

    # Patient, unlike the other query stages: no visitor waits for it.
    return Stage(
        name="log",
        routes={OUTCOMES: log_handler(store, keeping), VERDICTS: verdict_handler(store)},
        setup=setup,
        teardown=teardown,
    )


QUESTION = "When do you open today?"


def rehearse_words(langs: Iterable[str]) -> None:
    """Load these languages' word lists for the first question; it takes a second or two: call it in a thread."""
    langs = list(langs)
    words.ready(langs)
    identified(QUESTION)
    spoken(QUESTION)
    in_dictionary("question")
    for lang in langs:
        recognized(QUESTION, lang)
        asked_day(QUESTION, datetime.now(UTC), lang)


async def rehearse_searches(search: Searcher, sites: Iterable[str]) -> None:
    """Search each site once, within REHEARSAL: Elasticsearch's first searches of an index take several times longer.

    Errors are ignored; the first question will report them.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(REHEARSAL):
            for site in sites:
                with suppress(PagewireError):
                    await search.hits(site, QUESTION, kind="hybrid", size=1)


def judging(settings: Settings) -> frozenset[JudgeName]:
    """The judges in use. Raises: SettingsError: it is the reranker, and none is configured."""
    if settings.llm_model is None:
        return frozenset()  # only a model's sentences are judged
    if settings.judge == "reranker" and settings.reranker == "none":
        raise SettingsError("judge (PAGEWIRE_JUDGE): `reranker` needs one, PAGEWIRE_RERANKER is none")
    return frozenset({settings.judge})


def judges(
    settings: Settings, models: ChatModels | None, reranker: Reranker | None, site_prompts: SitePrompts
) -> dict[JudgeName, Judge]:
    """The judges by name."""
    found: dict[JudgeName, Entails] = {}
    if models is not None:
        found["model"] = ModelJudge(models, site_prompts).entailed
    if reranker is not None:
        found["reranker"] = RerankerJudge(reranker).entailed
    return {name: Judge(each, settings.judge_least) for name, each in found.items()}
