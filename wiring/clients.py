"""Gives an edge (the gateway, a command) the pipelines' parts, and connects each at its first use.

async with Clients(settings) as clients:
    intake = await clients.intake()
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial
from typing import Protocol, Self, TypeVar

from adapters.elastic.bundle import Elastic
from adapters.elastic.conversations import ElasticConversations, ElasticHandovers
from adapters.elastic.inventory import ElasticInventories
from adapters.elastic.outcomes import ElasticOutcomes
from adapters.elastic.page_view import ElasticPageView
from adapters.elastic.system_index import ElasticAuditLog, ElasticExamples, ElasticKeys, ElasticRuns, ElasticStates
from adapters.elastic.texts import ElasticTexts
from adapters.elastic.typeahead import ElasticTypeahead
from adapters.embedders.registry import Models
from adapters.kafka import KafkaSender, bootstrap_servers, ensure_topics
from adapters.kafka.bus import KafkaBus
from adapters.kafka.log import KafkaLogReader, KafkaLogTail
from adapters.kafka.scan import KafkaLogScan
from adapters.kafka.shared_tail import KafkaSharedTail
from adapters.own_process import in_own_process
from pipelines.conversations.ask import Asker
from pipelines.conversations.suggestions import Suggestions
from pipelines.ingest.accept import Intake
from pipelines.ingest.receipts import ReceiptReader
from pipelines.operate.access_keys import AccessKeys, FiledKey
from pipelines.operate.audit.repair import Auditor, AuditRuns
from pipelines.operate.audit_log import AuditLog
from pipelines.operate.chat_switches import ChatSwitches
from pipelines.operate.dead_letters.letters import Letters
from pipelines.operate.dead_letters.open_letters import OpenLetters
from pipelines.operate.rebuild.catch_up import Report
from pipelines.operate.rebuild.rebuild import Rebuilder
from pipelines.operate.site_log import SiteLog, site_log
from pipelines.operate.site_runs import EvaluationRun, EvaluationRunning, EvaluationRuns, SiteRuns
from pipelines.operate.states import ConnectorRuns, LastUses
from pipelines.operate.status import StatusReader
from pipelines.query.examples import ExampleComparison
from pipelines.query.extractive.suggestions import Proposal, proposals
from pipelines.query.live.live_texts import LiveTexts
from pipelines.query.live.site_privacy import SitePrivacy
from pipelines.query.log.correction_trials import CorrectionTrials
from pipelines.query.log.frequent import ASKERS, FrequentQuestions
from pipelines.query.log.gap_reports import GapReports
from pipelines.query.log.grouping import grouped
from pipelines.query.log.handler import Notes
from pipelines.query.search.search import Searcher
from pipelines.runtime.record import Record
from pipelines.runtime.servers_clock import ServersClock
from schemas.rebuild import RebuildBy
from schemas.topics import ANSWERS, CHANGES, RECEIPTS, Topic
from wiring.addresses import addresses
from wiring.ingest import rebuilder
from wiring.settings import Settings
from wiring.shared_counts import Share, chat_switches, sharing


class _Closed(Protocol):
    async def aclose(self) -> None: ...


class _Started(_Closed, Protocol):
    async def start(self) -> object: ...


Kept = TypeVar("Kept", bound=_Closed)
Running = TypeVar("Running", bound=_Started)


class Clients:
    """One per process. Not for use by several tasks before the first use of each part."""

    def __init__(self, settings: Settings) -> None:
        """Raises: ServiceMissing: no address of Kafka or Elasticsearch."""
        self.settings = addresses(settings)
        assert self.settings.elasticsearch
        self.bus = KafkaBus(self.settings)
        self.elastic = Elastic(self.settings.elasticsearch, self.settings)
        self.models = Models(self.settings, self.elastic.indexes)
        self._stack = AsyncExitStack()
        self._sender: KafkaSender | None = None
        self._clock: ServersClock | None = None
        self._open_letters: OpenLetters | None = None
        self._counts: Share | None = None
        self._topics_are_there = False

    async def __aenter__(self) -> Self:
        self._stack.push_async_callback(self.elastic.aclose)
        self._stack.push_async_callback(self.models.aclose)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def topics(self) -> None:
        """Create missing topics: an edge may start before the first worker. Raises: Retryable: no broker."""
        if not self._topics_are_there:
            await ensure_topics(bootstrap_servers(self.settings), self.settings)
            self._topics_are_there = True

    async def sender(self) -> KafkaSender:
        """Raises: Retryable: no broker."""
        if self._sender is None:
            await self.topics()
            self._sender = await self._stack.enter_async_context(KafkaSender(self.settings))
        return self._sender

    async def intake(self) -> Intake:
        """Raises: Retryable: no broker."""
        return Intake(await self.sender(), self.elastic.pages, self.settings, await self.clock())

    async def clock(self) -> ServersClock:
        """The common time of all gateways and commands."""
        if self._clock is None:
            self._clock = ServersClock(self.elastic.time)
            await self._start(self._clock)
        return self._clock

    async def counts(self) -> Share:
        """Returns a factory of counts that all gateways and workers share. Raises: Retryable: no broker."""
        if self._counts is None:
            clock = await self.clock()
            shared = sharing(self.settings, await self.sender(), lambda: clock().timestamp())
            self._counts = await self._stack.enter_async_context(shared)
        return self._counts

    async def receipts(self, *, waiting: bool) -> ReceiptReader:
        """`waiting`: the caller will call `settled`. Raises: Retryable: no broker."""
        reader = ReceiptReader(self.elastic.pages, self._tail(RECEIPTS))
        if waiting:
            await self.topics()
            await self._start(reader)
        return reader

    async def asker(self, *, shared: bool = False) -> Asker:
        """`shared`: each gateway reads its share of the answers' partitions. Raises: Retryable: no broker."""
        log = await self._stack.enter_async_context(KafkaLogReader(self.settings, ANSWERS))
        tail = partial(KafkaSharedTail, self.settings, ANSWERS, shared=shared)
        return await self._start(Asker(await self.sender(), log, tail))

    def conversations(self) -> ElasticConversations:
        return ElasticConversations(self.elastic.es, self.elastic.indexes)

    def handovers(self) -> ElasticHandovers:
        return ElasticHandovers(self.elastic.es, self.elastic.indexes)

    def examples(self) -> ElasticExamples:
        return ElasticExamples(self.elastic.es, self.elastic.indexes)

    def example_likeness(self) -> ExampleComparison:
        return ExampleComparison(self.examples().of_site, self.models)

    def texts(self) -> ElasticTexts:
        return ElasticTexts(self.elastic.es, self.elastic.indexes)

    async def correction_trials(self) -> CorrectionTrials:
        return CorrectionTrials(self.questions(), self.models, await self.clock())

    async def access_keys(self) -> AccessKeys:
        """Read periodically, because requests are checked against them."""
        filed = (FiledKey(key.name, key.sha256, key.scopes, key.site, key.groups) for key in self.settings.keys)
        store = ElasticKeys(self.elastic.es, self.elastic.indexes)
        return await self._start(AccessKeys(store, filed, await self.clock()))

    async def chat_switches(self) -> ChatSwitches:
        """Read periodically, because questions are checked against them."""
        return await self._start(chat_switches(self.settings, self.elastic, await self.clock()))

    async def audit_log(self) -> AuditLog:
        return AuditLog(ElasticAuditLog(self.elastic.es, self.elastic.indexes), await self.clock())

    def questions(self) -> ElasticOutcomes:
        return ElasticOutcomes(self.elastic.es, self.elastic.indexes)

    def runs(self) -> ElasticRuns:
        return ElasticRuns(self.elastic.es, self.elastic.indexes)

    def page_view(self) -> ElasticPageView:
        return ElasticPageView(self.elastic.es)

    async def suggestions(self, asker: Asker, importing: Callable[[str], bool]) -> Suggestions:
        pages = self.page_view()

        async def propose(site: str, lang: str) -> list[Proposal]:
            return await asyncio.to_thread(proposals, await pages.beginnings(site, lang), lang)

        return self._keep(Suggestions(propose, asker, importing, await self.clock()))

    async def gaps(self) -> GapReports:
        group = partial(in_own_process, grouped)
        questions, pages = self.questions(), self.page_view()
        return self._keep(GapReports(questions, pages.readable, self.models, group, await self.clock()))

    def typeahead(self) -> ElasticTypeahead:
        return ElasticTypeahead(self.elastic.es, self.elastic.indexes)

    async def frequent(self) -> FrequentQuestions:
        """Of the sites that keep the words of questions and show them."""
        least = {name: ASKERS for name, site in self.settings.sites.items() if site.chat.frequent_questions}
        return self._keep(FrequentQuestions(self.questions(), self.page_view().readable, least, await self.clock()))

    async def notes(self) -> Notes:
        """Follows the sites' privacy rules. Raises: Retryable: no broker."""
        privacy = SitePrivacy(self.settings.sites)
        await self._start(LiveTexts(self.texts(), privacy.take))
        return Notes(await self.sender(), self.questions(), self.settings.sites, privacy)

    def searcher(self) -> Searcher:
        return Searcher(self.elastic.search, self.models, self.settings)

    def status(self) -> StatusReader:
        return self._keep(StatusReader(self.settings.sites, self.bus, self.elastic, self._letters_open()))

    async def letters(self) -> Letters:
        """Raises: Retryable: no broker."""
        changes = await self._stack.enter_async_context(KafkaLogReader(self.settings, CHANGES))
        return Letters(self.bus, await self.sender(), self.elastic.pages, changes, self._letters_open())

    def changes(self) -> KafkaLogScan:
        """Opens the whole change log. Its topic exists after the first use of `intake`."""
        return KafkaLogScan(self.settings, CHANGES)

    def changes_of(self, site: str) -> AbstractAsyncContextManager[SiteLog]:
        """Opens the change log for one site."""
        return site_log(self.changes(), self.elastic.places, site)

    async def auditor(self) -> Auditor:
        """Raises: Retryable: no broker."""
        elastic = self.elastic
        inventories = ElasticInventories(elastic.es, elastic.indexes, elastic.writer)
        return Auditor(self.changes_of, inventories.of, elastic.pages, await self.sender())

    async def audit_runs(self, auditor: Auditor) -> AuditRuns:
        return self._keep(AuditRuns(self.states(), auditor, await self.clock()))

    async def evaluation_runs(self) -> EvaluationRuns:
        clock = await self.clock()
        return self._keep(SiteRuns(self.states(), "evaluation-run", EvaluationRun, clock, EvaluationRunning))

    async def connector_runs(self) -> ConnectorRuns:
        return ConnectorRuns(self.states(), await self.clock())

    async def last_uses(self) -> LastUses:
        """Noted uses are written periodically."""
        return await self._start(LastUses(self.states(), await self.clock()))

    def states(self) -> ElasticStates:
        return ElasticStates(self.elastic.es, self.elastic.indexes)

    async def rebuilder(self, site: str, report: Report = lambda _: None, *, by: RebuildBy = "self") -> Rebuilder:
        """Raises: UnknownSite. Retryable: no broker."""
        await self.topics()
        workers = await self.sender() if by == "workers" else None
        return rebuilder(site, self.settings, self.elastic, self.models, report, workers)

    def _letters_open(self) -> OpenLetters:
        if self._open_letters is None:
            self._open_letters = self._keep(OpenLetters(self.bus))
        return self._open_letters

    def _keep(self, one: Kept) -> Kept:
        """Close it at the end."""
        self._stack.push_async_callback(one.aclose)
        return one

    async def _start(self, one: Running) -> Running:
        await self._keep(one).start()
        return one

    def _tail(self, topic: Topic) -> Callable[[Callable[[Record], None]], KafkaLogTail]:
        return partial(KafkaLogTail, self.settings, topic)
