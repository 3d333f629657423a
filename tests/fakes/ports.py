"""In-memory siblings of the ports, for tests of the edge and of the chat page without Kafka or Elasticsearch."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter, defaultdict, deque
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from adapters.elastic.page_view import ElasticPageView
from adapters.elastic.system_index import ElasticExamples
from connectors.cms.sources import NoSource
from gateway.ports import Ports
from gateway.rebuild_runs import RebuildRuns
from gateway.reconcile_runs import ReconcileRuns
from pipelines.conversations.ask import Asker, BadPosition, Followed, UnknownAnswer
from pipelines.conversations.suggestions import Proposal, Suggestions
from pipelines.conversations.titles import Titles
from pipelines.ingest.accept import Acceptance, Change, Intake
from pipelines.ingest.documents.convert import convert
from pipelines.ingest.receipts import ReceiptReader
from pipelines.operate.access_keys import AccessKeys, FiledKey
from pipelines.operate.audit.audit import AuditProgress, Report
from pipelines.operate.audit.index_diff import Kind
from pipelines.operate.audit.repair import Auditor, AuditRuns
from pipelines.operate.audit.report import AuditReport, RepairReport
from pipelines.operate.audit_log import AuditLog
from pipelines.operate.chat_switches import ChatSwitches
from pipelines.operate.dead_letters.letters import LetterHandled, Letters, LetterUnreadable, UnknownLetter
from pipelines.operate.dead_letters.view import BadValue
from pipelines.operate.rebuild.rebuild import NothingThere, StillLive
from pipelines.operate.site_runs import EvaluationRun, EvaluationRunning, SiteRuns
from pipelines.operate.states import ConnectorRuns, LastUses
from pipelines.operate.status import StatusReader
from pipelines.query.examples import ExampleComparison
from pipelines.query.log.correction_trials import CorrectionTrials
from pipelines.query.log.frequent import FrequentQuestions
from pipelines.query.log.gap_reports import GapReports
from pipelines.query.log.grouping import Numbers, grouped
from pipelines.query.log.handler import Notes
from pipelines.query.log.readable import PageName
from pipelines.query.search.search import Searcher
from pipelines.query.search.typeahead import TitleCandidate
from pipelines.runtime.counts import SharedCounts
from pipelines.runtime.embedder import Matrix32
from pipelines.runtime.errors import PagewireError
from pipelines.runtime.record import Lane
from pipelines.runtime.settings import Site
from schemas.answer import Accepted, Answered, AnswerEvent, Done, Event, QuestionRephrased, Restart, SourcesFound, Token
from schemas.base import Message
from schemas.example import WorkedExample
from schemas.http import (
    IndexedPage,
    LabelCount,
    LabelList,
    ListedPage,
    LivePage,
    LiveSection,
    PageList,
    SearchHit,
    SearchKind,
    SystemStatus,
)
from schemas.ingest import ChunkCounts, Receipt, ReceiptState
from schemas.keys import page_key, parse_page_key, same_address
from schemas.labels import NO_LABELS, Labels, have_labels, label_tokens
from schemas.letters import (
    UNREADABLE,
    Action,
    DeadLetterCounts,
    DeadLetterDetail,
    DeadLetterFilter,
    DeadLetterList,
    DeadLetterSummary,
    OpenLetterCount,
)
from schemas.outcome import OutcomeEvent
from schemas.query import Question
from schemas.rebuild import Generation, RebuildList, RebuildOrder, RebuildState
from schemas.topics import Topic
from tests.fakes.conversations import FakeConversations
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.outcomes import FakeOutcomes
from tests.fakes.stores import FakeAuditLog, FakeHandovers, FakeKeyStore, FakeRuns, FakeStates, FakeTextStore

EPOCH = datetime(2026, 5, 4, 12, tzinfo=UTC)


@dataclass
class FakeIntake(Intake, ReceiptReader):
    """Intake and receipts: an accepted change is searchable at once, unless `settles` is off."""

    languages: dict[str, str]  # site -> its first language
    settles: bool = True
    importing: bool = False
    error: PagewireError | None = None  # raised for every batch, ...
    refuses: Callable[[Change], PagewireError | None] = lambda _: None  # ... or for batches with such a change
    changes: dict[str, list[Change]] = field(default_factory=dict)
    batches: list[int] = field(default_factory=list)
    lanes: list[Lane] = field(default_factory=list)  # of the batches
    sources: list[str] = field(default_factory=list)  # of the batches
    _receipts: dict[str, Receipt] = field(default_factory=dict)

    async def accept(self, site: str, changes: Sequence[Change], source: str, lane: Lane = "save") -> list[Acceptance]:
        if self.error is not None:
            raise self.error
        for change in changes:
            if (refusal := self.refuses(change)) is not None:
                raise refusal
        self.batches.append(len(changes))
        self.lanes.append(lane)
        self.sources.append(source)
        return [self._accept(site, change) for change in changes]

    async def receipt(self, site: str, lang: str, page_id: str) -> Receipt | None:
        return self._receipts.get(page_key(site, lang, page_id))

    async def receipts(self, site: str, page_keys: Iterable[str]) -> dict[str, Receipt]:
        return {key: self._receipts[key] for key in page_keys if key in self._receipts}

    async def settled(self, page_key: str, change: tuple[int, datetime], timeout: float) -> Receipt | None:
        return self._receipts[page_key] if self.settles else None

    def is_importing(self, site: str) -> bool:
        return self.importing

    def _accept(self, site: str, change: Change) -> Acceptance:
        key = page_key(site, change.page.lang or self.languages[site], change.page.id)
        known = self._receipts.get(key)
        last = known.accepted_revision if known else 0
        revision = last + 1 if change.page.revision is None else change.page.revision
        if revision < last:
            return Acceptance(key, revision, EPOCH, superseded=True)
        self.changes.setdefault(key, []).append(change)
        state: ReceiptState = ("deleted" if change.op == "delete" else "searchable") if self.settles else "queued"
        self._receipts[key] = Receipt(
            page_key=key,
            accepted_revision=revision,
            searchable_revision=revision if state == "searchable" else None,
            state=state,
            chunks=ChunkCounts(total=1, embedded=1),
            accepted_at=EPOCH,
            searchable_at=EPOCH if state == "searchable" else None,
            lag_ms=0 if self.settles else None,
            reading=convert(change.page).reading if state == "searchable" else None,
        )
        return Acceptance(key, revision, EPOCH)


Step = Event | float | BaseException


@dataclass
class FakeAnswers(Asker):
    """Plays a script after `accepted`: events, pauses in seconds, errors. Positions count events.

    As in the real class, only the first reader gets `accepted`, not one that resumes. A stop ends the current pause and
    the answer.
    """

    script: Callable[[Question], Sequence[Step]]
    asked: list[Question] = field(default_factory=list)
    following: int = 0  # readers at this moment
    pulled: int = 0  # events taken by readers
    stopped: dict[str, asyncio.Event] = field(default_factory=lambda: defaultdict(asyncio.Event))

    async def ask(self, question: Question) -> AsyncGenerator[Followed, None]:
        self.asked.append(question)
        accepted = Accepted(request_id=question.request_id, conversation_id=question.conversation_id)
        self.pulled += 1
        yield Followed("0", AnswerEvent(request_id=question.request_id, seq=0, event=accepted))
        async for followed in self._play(question, 0):
            yield followed

    async def resume(self, site: str, request_id: str, position: str) -> AsyncGenerator[Followed, None]:
        question = next((q for q in self.asked if q.request_id == request_id), None)
        if question is None or not position.isdecimal():
            raise BadPosition("not a position of this answer")
        if question.site != site:
            raise UnknownAnswer("no such answer on this site")
        async for followed in self._play(question, int(position)):
            yield followed

    def new_id(self) -> str:
        return secrets.token_urlsafe(16)

    async def here(self, request_id: str) -> str:
        return "0"

    async def stop(self, site: str, request_id: str) -> None:
        if all(q.site == site for q in self.asked if q.request_id == request_id):
            self.stopped[request_id].set()

    async def recorded(self, site: str, request_id: str, position: str) -> AsyncGenerator[Followed, None]:
        """The events up to the script's first pause, which is endless without a reader."""
        question = next((q for q in self.asked if q.request_id == request_id), None)
        if question is None:
            return
        async for followed in self._play(question, int(position), waiting=False):
            yield followed

    async def _play(self, question: Question, after: int, *, waiting: bool = True) -> AsyncGenerator[Followed, None]:
        self.following += 1
        seq = 0
        text = ""
        steps: deque[Step] = deque(self.script(question))
        try:
            while steps:
                step = steps.popleft()
                if isinstance(step, BaseException):
                    raise step
                if isinstance(step, float):
                    stop = self.stopped[question.request_id]
                    if waiting:
                        with suppress(TimeoutError):
                            await asyncio.wait_for(stop.wait(), step)
                    if stop.is_set():
                        answer = Answered(text=text, citations=(), sources=(), extractive=False, stopped=True)
                        steps = deque((answer, Done()))
                    elif not waiting:
                        return
                    continue
                match step:
                    case Token(text=piece):
                        text += piece
                    case Restart():
                        text = ""
                seq += 1
                if seq > after:
                    self.pulled += 1
                    yield Followed(str(seq), AnswerEvent(request_id=question.request_id, seq=seq, event=step))
        finally:
            self.following -= 1


def plain_answer(question: Question) -> list[Step]:
    """A script: the shortest complete answer, in two tokens."""
    return [
        QuestionRephrased(question=question.question, mode="semantic"),
        SourcesFound(grade=0, sources=()),
        Token(text="The library opens "),
        Token(text="at nine."),
        Answered(text="The library opens at nine.", citations=(), sources=(), extractive=True),
        Done(),
    ]


@dataclass
class FakeSearch(Searcher):
    """Returns the first `size` of `found`."""

    found: Sequence[SearchHit] = ()
    error: PagewireError | None = None
    searches: list[tuple[str, str, SearchKind, int]] = field(default_factory=list)
    groups: list[tuple[str, ...]] = field(default_factory=list)  # of the searches
    labels: list[dict[str, Iterable[str]]] = field(default_factory=list)  # of the searches

    async def search(
        self,
        site: str,
        query: str,
        *,
        kind: SearchKind,
        size: int,
        groups: Iterable[str] = (),
        lang: str | None = None,
        labels: Mapping[str, Iterable[str]] = NO_LABELS,
    ) -> Sequence[SearchHit]:
        if self.error is not None:
            raise self.error
        self.searches.append((site, query, kind, size))
        self.groups.append(tuple(groups))
        self.labels.append(dict(labels))
        return self.found[:size]


@dataclass
class FakeTypeahead:
    """Returns scripted suggestions; `asked`: (site, typed text, language, groups)."""

    titled: Sequence[TitleCandidate] = ()
    headed: Sequence[TitleCandidate] = ()
    asked: list[tuple[str, str, str | None, tuple[str, ...]]] = field(default_factory=list)

    async def titles(
        self, site: str, typed: str, *, lang: str | None, groups: Iterable[str]
    ) -> tuple[Sequence[TitleCandidate], Sequence[TitleCandidate]]:
        self.asked.append((site, typed, lang, tuple(groups)))
        return self.titled, self.headed


@dataclass
class FakeStatus(StatusReader):
    """Returns a scripted status."""

    problems: dict[str, str] = field(default_factory=dict)
    found: SystemStatus = field(
        default_factory=lambda: SystemStatus(at=EPOCH, kafka=True, elasticsearch=True, stages=(), sites=())
    )

    async def status(self, sites: Sequence[str] | None = None) -> SystemStatus:
        if sites is None:
            return self.found
        of = {each.site: each for each in self.found.sites}
        return self.found.model_copy(update={"sites": tuple(of[site] for site in sites if site in of)})

    async def ready(self) -> tuple[bool, dict[str, str]]:
        return not self.problems, dict(self.problems)


@dataclass
class FakeLetters(Letters):
    """Keeps dead letters in memory; `accepts` decides whether an edited value is valid."""

    kept: dict[str, DeadLetterDetail] = field(default_factory=dict)  # by id, oldest first
    sent: list[tuple[str, bytes | None]] = field(default_factory=list)
    accepts: Callable[[bytes], bool] = lambda _: True
    error: PagewireError | None = None

    async def list(self, filter: DeadLetterFilter, limit: int = 100, *, handled: bool = False) -> DeadLetterList:
        fitting = [letter for letter in self._matching(filter) if handled or letter.state == "open"]
        return DeadLetterList(total=len(fitting), letters=tuple(fitting[::-1][:limit]))

    async def show(self, id: str, *, full: bool = False) -> DeadLetterDetail:
        if id not in self.kept:
            raise UnknownLetter(f"no dead letter {id}")
        return self.kept[id]

    async def redrive(self, id: str, value: bytes | None = None) -> DeadLetterSummary:
        letter = (await self.show(id)).letter
        if letter.code == UNREADABLE:
            raise LetterUnreadable(f"{id} can only be dropped")
        if value is not None and not self.accepts(value):
            raise BadValue("not a message")
        return self._handle(letter, "redriven" if value is None else "edited", value)

    async def drop(self, id: str) -> DeadLetterSummary:
        return self._handle((await self.show(id)).letter, "dropped")

    async def redrive_all(self, filter: DeadLetterFilter) -> AsyncGenerator[DeadLetterCounts, None]:
        handled = refused = 0
        for letter in (await self.list(filter, len(self.kept))).letters:
            try:
                await self.redrive(letter.id)
                handled += 1
            except LetterUnreadable:
                refused += 1
            yield DeadLetterCounts(handled=handled, refused=refused)

    async def drop_all(self, filter: DeadLetterFilter) -> AsyncGenerator[DeadLetterCounts, None]:
        for n, letter in enumerate((await self.list(filter, len(self.kept))).letters, start=1):
            await self.drop(letter.id)
            yield DeadLetterCounts(handled=n)

    async def open_counts(self) -> Sequence[OpenLetterCount]:
        if self.error is not None:
            raise self.error
        letters = [letter for letter in self._matching(DeadLetterFilter()) if letter.state == "open"]
        kinds = Counter((letter.topic, letter.stage, letter.code) for letter in letters)
        return [OpenLetterCount(topic=t, stage=s, code=c, count=count) for (t, s, c), count in kinds.items()]

    def _matching(self, filter: DeadLetterFilter) -> Sequence[DeadLetterSummary]:
        return [kept.letter for kept in self.kept.values() if filter.fits(kept.letter)]

    def _handle(self, letter: DeadLetterSummary, action: Action, value: bytes | None = None) -> DeadLetterSummary:
        if letter.state != "open":
            raise LetterHandled(f"{letter.id} was {letter.state}")
        if action != "dropped":
            self.sent.append((letter.id, value))
        settled = letter.model_copy(update={"state": action, "handled_at": EPOCH})
        self.kept[letter.id] = self.kept[letter.id].model_copy(update={"letter": settled})
        return settled


@dataclass
class FakeAudits(Auditor):
    """Returns scripted findings."""

    counts: dict[Kind, int] = field(default_factory=dict)
    error: PagewireError | None = None
    asked: list[tuple[object, ...]] = field(default_factory=list)
    holds: asyncio.Event | None = None  # what an audit waits for

    async def audit(
        self, site: str, *, index: str | None = None, settle: float = 0.0, report: Report = lambda _: None
    ) -> AuditReport:
        report(AuditProgress("log", 1, 2))
        if self.holds is not None:
            await self.holds.wait()
        self.asked.append((site, index, settle))
        return self._report(site, index or f"pagewire-{site}-000001", self.counts)

    async def repair(
        self, site: str, *, force: bool = False, settle: float = 0.0, report: Report = lambda _: None
    ) -> RepairReport:
        self.asked.append((site, force))
        name = f"pagewire-{site}-000001"
        before = self._report(site, name, self.counts)
        return RepairReport(before=before, sent=1, deleted=0, after=self._report(site, name, {}))

    def _report(self, site: str, index: str, counts: dict[Kind, int]) -> AuditReport:
        if self.error is not None:
            raise self.error
        return AuditReport(
            site=site, index=index, pages=1, chunks=2, counts=counts, findings=(), failed=0, unreadable=0, seconds=0.1
        )


@dataclass
class FakeRebuilds(RebuildRuns):
    """A rebuild is verified as soon as it starts, unless `error` is set."""

    error: PagewireError | None = None
    kept: dict[int, Generation] = field(default_factory=dict)
    orders: list[RebuildOrder] = field(default_factory=list)
    slow: bool = False  # promotions take long
    running: str | None = None  # who is at work

    async def list(self, site: str) -> RebuildList:
        return RebuildList(generations=tuple(self.kept.values()), running=self.running)

    async def get(self, site: str, generation: int) -> Generation:
        if generation not in self.kept:
            raise NothingThere(f"site {site} has no generation {generation}")
        return self.kept[generation]

    async def start(self, site: str, order: RebuildOrder) -> Generation:
        if self.error is not None:
            raise self.error
        self.orders.append(order)
        number = max(self.kept, default=1) + 1
        self.kept[number] = Generation(
            site=site,
            generation=number,
            index=f"pagewire-{site}-{number:06d}",
            source=order.source,
            follows=order.source,
            embedder="fake",
            model="fake-4",
            dims=4,
            chunker="content-512-20",
            state="verified",
            created_at=EPOCH,
            updated_at=EPOCH,
            documents=0,
            bytes=0,
        )
        return self.kept[number]

    async def stop(self, site: str, by: str) -> None:
        if self.running is None:
            raise NothingThere(f"nobody is at work on the indexes of site {site}")
        self.running = None

    async def promote(self, site: str, generation: int) -> Generation | None:
        wanted = await self.get(site, generation)
        if self.error is not None:
            raise self.error
        states: dict[str, RebuildState] = {"live": "previous"}
        for number, one in self.kept.items():
            self.kept[number] = one.model_copy(update={"state": states.get(one.state, one.state)})
        self.kept[generation] = wanted.model_copy(update={"state": "live"})
        return None if self.slow else self.kept[generation]

    async def rollback(self, site: str) -> Generation | None:
        for number, one in self.kept.items():
            if one.state == "previous":
                return await self.promote(site, number)
        raise NothingThere(f"site {site} has no previous index to roll back to")

    async def discard(self, site: str, generation: int) -> None:
        if (await self.get(site, generation)).state == "live":
            raise StillLive(f"generation {generation} of site {site} is live; it is not deleted")
        del self.kept[generation]


@dataclass
class FakeReconciles(ReconcileRuns):
    """Records started reconciles; `connectors`: site -> connectors that can be reconciled."""

    connectors: dict[str, tuple[str, ...]] = field(default_factory=dict)
    begun: list[tuple[str, str, str]] = field(default_factory=list)

    def check(self, site: str, connector: str) -> None:
        if connector not in self.connectors.get(site, ()):
            raise NoSource(f"site {site} has no connector {connector!r}")

    async def start(self, site: str, connector: str, by: str) -> None:
        self.check(site, connector)
        self.begun.append((site, connector, by))


class FakeExamples(ElasticExamples):
    """Keeps them in memory."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], WorkedExample] = {}

    async def of_site(self, site: str) -> list[WorkedExample]:
        return [example for (of, _), example in self.kept.items() if of == site]

    async def put(self, example: WorkedExample) -> None:
        self.kept[example.site, example.id] = example

    async def remove(self, site: str, id: str) -> bool:
        return self.kept.pop((site, id), None) is not None


@dataclass
class FakeIndexedPages(ElasticPageView):
    """Pages by their key; `groups`: those that may read one which is not for everybody."""

    kept: dict[str, IndexedPage] = field(default_factory=dict)
    groups: dict[str, frozenset[str]] = field(default_factory=dict)
    labelled: dict[str, Labels] = field(default_factory=dict)
    changed_at: datetime = datetime(2026, 7, 28, 12, 0, 0, 500_000, tzinfo=UTC)
    published_at: datetime | None = None
    proposed: Sequence[Proposal] = ()  # questions to begin a chat with

    async def propose(self, site: str, lang: str) -> Sequence[Proposal]:
        return self.proposed

    async def page(self, site: str, page_key: str, groups: Iterable[str] = ()) -> IndexedPage:
        found = self.kept.get(page_key, IndexedPage(chunks=(), total=0))
        if page_key in self.groups and not self.groups[page_key].intersection(groups):
            return IndexedPage(chunks=(), total=found.total, hidden=found.total)
        return found

    async def live(self, site: str, page_key: str, groups: Iterable[str] = ()) -> LivePage | None:
        chunks = (await self.page(site, page_key, groups)).chunks
        if not chunks:
            return None
        named = parse_page_key(page_key)
        return LivePage(
            page_id=named.page_id,
            lang=named.lang,
            title=chunks[0].title,
            url=chunks[0].url,
            revision=1,
            changed_at=self.changed_at,
            indexed_at=self.changed_at,
            fields={chunk.field: chunk.text for chunk in chunks if chunk.field != "content"},
            sections=tuple(LiveSection(title="", url="", text=c.text) for c in chunks if c.field == "content"),
            labels=self.labelled.get(page_key, {}),
            published_at=self.published_at,
        )

    async def pages(
        self,
        site: str,
        *,
        groups: Iterable[str] | None = (),
        after: str = "",
        limit: int = 1_000,
        lang: str | None = None,
        described: bool = False,
        path: str | None = None,
        labels: Mapping[str, Iterable[str]] = NO_LABELS,
    ) -> PageList:
        allowed = None if groups is None else set(groups)
        listed = [
            (
                key,
                ListedPage(
                    page_id=parsed.page_id,
                    lang=parsed.lang,
                    title=chunk.title,
                    url=chunk.url,
                    revision=1,
                    labels=self.labelled.get(key, {}),
                ),
            )
            for key, page in sorted(self.kept.items())
            for parsed, chunk in [(parse_page_key(key), page.chunks[0])]
            if parsed.site == site and key > after and lang in (None, parsed.lang)
            if allowed is None or key not in self.groups or self.groups[key] & allowed
            if have_labels(label_tokens(self.labelled.get(key, {})), labels)
        ]
        shown = listed[:limit]
        return PageList(pages=tuple(page for _, page in shown), next=shown[-1][0] if len(listed) > limit else None)

    async def labels(self, site: str, groups: Iterable[str] = ()) -> LabelList:
        pages = (await self.pages(site, groups=groups)).pages
        counts = Counter((key, value) for page in pages for key, values in page.labels.items() for value in values)
        found = [LabelCount(key=key, value=value, pages=n) for (key, value), n in sorted(counts.items())]
        return LabelList(labels=tuple(found), more=False)

    async def readable(self, site: str, page_ids: Collection[str], groups: Iterable[str]) -> frozenset[PageName]:
        pages = (await self.pages(site, groups=groups)).pages
        return frozenset((page.page_id, page.lang) for page in pages if page.page_id in page_ids)

    async def at(self, site: str, address: str, *, groups: Iterable[str] | None = ()) -> list[ListedPage]:
        return [page for page in (await self.pages(site, groups=groups)).pages if same_address(page.url, address)]


@dataclass
class FakeLogSender:
    """A topic whose stage processes every message at once."""

    outcomes: FakeOutcomes
    error: PagewireError | None = None  # there is no broker

    async def send(
        self, topic: Topic, key: str, message: Message, *, partition_key: str | None = None, lane: Lane | None = None
    ) -> None:
        if self.error is not None:
            raise self.error
        assert isinstance(message, OutcomeEvent)
        await self.outcomes.put(message)

    async def send_all(self, topic: Topic, key: str, messages: Sequence[Message]) -> None:
        for message in messages:
            await self.send(topic, key, message)


class FakeModels:
    """One model for all sites."""

    def __init__(self) -> None:
        self.model = FakeEmbedder()

    async def for_site(self, site: str) -> FakeEmbedder:
        return self.model


async def _grouped(vectors: Matrix32, langs: Sequence[str], asked: Sequence[int], common: bytes) -> Numbers:
    """In this process: there are few."""
    return grouped(vectors, langs, asked, common)


@dataclass(frozen=True)
class FakePorts:
    """All fakes, by their own types; `ports` is what the gateway takes."""

    pages: FakeIntake = field(default_factory=lambda: FakeIntake({"town": "en"}))
    answers: FakeAnswers = field(default_factory=lambda: FakeAnswers(plain_answer))
    conversations: FakeConversations = field(default_factory=FakeConversations)
    handovers: FakeHandovers = field(default_factory=FakeHandovers)
    search: FakeSearch = field(default_factory=FakeSearch)
    typeahead: FakeTypeahead = field(default_factory=FakeTypeahead)
    least: Mapping[str, int] = field(default_factory=dict)  # visitors of a frequent question, of sites that show them
    status: FakeStatus = field(default_factory=FakeStatus)
    letters: FakeLetters = field(default_factory=FakeLetters)
    audits: FakeAudits = field(default_factory=FakeAudits)
    rebuilds: FakeRebuilds = field(default_factory=FakeRebuilds)
    reconciles: FakeReconciles = field(default_factory=FakeReconciles)
    examples: FakeExamples = field(default_factory=FakeExamples)
    texts: FakeTextStore = field(default_factory=FakeTextStore)
    keys: FakeKeyStore = field(default_factory=FakeKeyStore)
    filed: Sequence[FiledKey] = ()  # keys of pagewire.yaml
    states: FakeStates = field(default_factory=FakeStates)
    enabled: Mapping[str, bool] = field(default_factory=dict)  # chats, by pagewire.yaml; default: all are
    audit_log: FakeAuditLog = field(default_factory=FakeAuditLog)
    outcomes: FakeOutcomes = field(default_factory=FakeOutcomes)
    runs: FakeRuns = field(default_factory=FakeRuns)
    indexed: FakeIndexedPages = field(default_factory=FakeIndexedPages)
    sites: Mapping[str, Site] = field(default_factory=lambda: {"town": Site()})
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    titles: Titles | None = None

    @property
    def ports(self) -> Ports:
        return Ports(
            intake=self.pages,
            receipts=self.pages,
            answers=self.answers,
            conversations=self.conversations,
            handovers=self.handovers,
            suggestions=Suggestions(self.indexed.propose, self.answers, self.pages.is_importing, self.now),
            search=self.search,
            typeahead=self.typeahead,
            frequent=FrequentQuestions(self.outcomes, self.indexed.readable, self.least, self.now),
            status=self.status,
            letters=self.letters,
            audits=self.audits,
            audit_runs=AuditRuns(self.states, self.audits, self.now),
            rebuilds=self.rebuilds,
            reconciles=self.reconciles,
            examples=self.examples,
            alike=ExampleComparison(self.examples.of_site, FakeModels()),
            texts=self.texts,
            correction_trials=CorrectionTrials(self.outcomes, FakeModels(), self.now),
            keys=AccessKeys(self.keys, self.filed, self.now),
            uses=LastUses(self.states, self.now),
            runs=ConnectorRuns(self.states, self.now),
            chat=ChatSwitches(self.states, self.enabled, self.now),
            audit_log=AuditLog(self.audit_log, self.now),
            questions=self.outcomes,
            indexed=self.indexed,
            gaps=GapReports(self.outcomes, self.indexed.readable, FakeModels(), _grouped, self.now),
            evaluations=self.runs,
            evaluation_runs=SiteRuns(self.states, "evaluation-run", EvaluationRun, self.now, EvaluationRunning),
            notes=Notes(FakeLogSender(self.outcomes), self.outcomes, self.sites),
            now=self.now,
            counts=lambda _, seconds: SharedCounts(seconds, lambda: self.now().timestamp()),
            titles=self.titles,
        )
