"""What the gateway needs of the pipelines; the pipelines' own classes and the fakes of the tests both fit."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from pipelines.conversations.ask import Followed
from pipelines.conversations.conversations import ConversationStore
from pipelines.conversations.handovers import HandoverStore
from pipelines.conversations.titles import Titles
from pipelines.evaluate.publication import RunStore
from pipelines.ingest.accept import Acceptance, Change
from pipelines.operate.access_keys import AccessKeys
from pipelines.operate.audit.report import AuditReport, RepairReport
from pipelines.operate.audit.runs import AuditRuns
from pipelines.operate.audit_log import AuditLog
from pipelines.operate.chat_switches import ChatSwitches
from pipelines.operate.connector_runs import ConnectorRuns
from pipelines.operate.last_uses import LastUses
from pipelines.query.examples import ExampleComparison
from pipelines.query.live.live_texts import TextStore
from pipelines.query.log.gap_reports import GapReports
from pipelines.query.log.notes import Notes
from pipelines.query.log.ports import QuestionReader
from pipelines.query.log.readable import PageRights
from pipelines.runtime.counts import SharedCounts
from pipelines.runtime.record import Lane
from schemas.example import WorkedExample
from schemas.http import IndexedPage, ListedPage, PageList, SearchHit, SearchKind, SystemStatus
from schemas.ingest import Receipt
from schemas.letters import (
    DeadLetterCounts,
    DeadLetterDetail,
    DeadLetterFilter,
    DeadLetterList,
    DeadLetterSummary,
    OpenLetterCount,
)
from schemas.query import Question
from schemas.rebuild import Generation, RebuildList, RebuildOrder
from schemas.topics import Topic

__all__ = [
    "Acceptance",
    "Answers",
    "Audits",
    "Change",
    "ConversationStore",
    "Followed",
    "IndexedPages",
    "Intake",
    "Letters",
    "Ports",
    "Receipts",
    "Search",
    "Status",
]


class Intake(Protocol):
    """Puts changes into the log."""

    async def accept(self, site: str, changes: Sequence[Change], source: str, lane: Lane = "save") -> list[Acceptance]:
        """In order; returns when the broker has them all. Saves overtake what is in the lane `bulk`.

        Raises:
            UnknownSite: not in pagewire.yaml.
            TooLarge: one of the pages; none was accepted.
            Retryable: no broker; some may have been accepted, sending all again is safe.
        """
        ...


class Receipts(Protocol):
    """What became of a change."""

    async def receipt(self, site: str, lang: str, page_id: str) -> Receipt | None:
        """None: no change of this page was ever accepted. Raises: Retryable."""
        ...

    async def receipts(self, site: str, page_keys: Iterable[str]) -> dict[str, Receipt]:
        """By page key; pages of which no change was ever accepted are missing. Raises: Retryable."""
        ...

    async def settled(self, page_key: str, change: tuple[int, datetime], timeout: float) -> Receipt | None:
        """The receipt once this change (revision, when it was accepted) or a newer one is searchable, deleted or
        failed; None after `timeout` s."""
        ...

    def is_importing(self, site: str) -> bool:
        """Whether many changes of the site are on their way into its index."""
        ...


class Answers(Protocol):
    """Questions in, answer events out. Closing the generator stops following, not the answer."""

    def ask(self, question: Question) -> AsyncGenerator[Followed, None]:
        """Put the question into the log and follow its answer, from `accepted` to `done`.

        Raises:
            Retryable: the broker does not take it.
        """
        ...

    def resume(self, site: str, request_id: str, position: str) -> AsyncGenerator[Followed, None]:
        """Follow on after `position`, on any gateway; an empty position is before the first event.

        Raises:
            BadPosition: not a position of this request.
            UnknownAnswer: it is another site's.
            Retryable: the log cannot be read.
        """
        ...

    def recorded(self, site: str, request_id: str, position: str) -> AsyncGenerator[Followed, None]:
        """As `resume`, but only what is there now."""
        ...

    def new_id(self) -> str:
        """An id for a request, which nobody can guess."""
        ...

    async def here(self, request_id: str) -> str:
        """A position before every event of an answer that nobody has asked for yet. Raises: Retryable."""
        ...

    async def stop(self, site: str, request_id: str) -> None:
        """Nobody on this site wants more of this answer: it ends with what is there. Raises: Retryable."""
        ...


class Search(Protocol):
    """Finds chunks."""

    async def search(
        self, site: str, query: str, *, kind: SearchKind, size: int, groups: Iterable[str] = ()
    ) -> Sequence[SearchHit]:
        """Best first. Raises: UnknownSite, Retryable."""
        ...


class Status(Protocol):
    """How the whole system is."""

    async def status(self, sites: Sequence[str] | None = None) -> SystemStatus:
        """Of these sites, by default of all."""
        ...

    async def ready(self) -> tuple[bool, dict[str, str]]:
        """Whether Kafka, Elasticsearch and the stages can be worked with, and what is wrong per part."""
        ...


class Letters(Protocol):
    """Dead letters. All raise Retryable: no broker; those with an id raise UnknownLetter."""

    async def list(self, filter: DeadLetterFilter, limit: int, *, handled: bool = False) -> DeadLetterList:
        """The newest open ones that fit; `handled`: also those that are open no more."""
        ...

    async def show(self, id: str, *, full: bool = False) -> DeadLetterDetail: ...

    async def redrive(self, id: str, value: bytes | None = None) -> DeadLetterSummary:
        """Raises: LetterHandled, LetterUnreadable; BadValue: `value` (JSON) is no message of the letter's topic."""
        ...

    async def drop(self, id: str) -> DeadLetterSummary:
        """Raises: LetterHandled."""
        ...

    def redrive_all(self, filter: DeadLetterFilter) -> AsyncGenerator[DeadLetterCounts, None]: ...

    def drop_all(self, filter: DeadLetterFilter) -> AsyncGenerator[DeadLetterCounts, None]: ...

    async def open_counts(self) -> Sequence[OpenLetterCount]: ...


class IndexedPages(PageRights, Protocol):
    """Pages as they stand in the live indexes."""

    async def page(self, site: str, page_key: str, groups: Iterable[str] = ()) -> IndexedPage:
        """The chunks that these groups may read. Raises: Retryable."""
        ...

    async def pages(
        self, site: str, *, groups: Iterable[str] | None = (), after: str = "", limit: int = ...
    ) -> PageList:
        """Pages that these groups may read, by their keys, from `next` of the list before on. Raises: Retryable."""
        ...

    async def at(self, site: str, address: str, *, groups: Iterable[str] | None = ()) -> list[ListedPage]:
        """The pages of this address, in all their languages. Raises: Retryable."""
        ...


class Audits(Protocol):
    """Compares indexes with the log. All raise AuditRunning: one of the site is at work; Retryable."""

    async def audit(self, site: str, *, index: str | None, settle: float) -> AuditReport:
        """Of the live index by default. Raises: NoSuchIndex."""
        ...

    async def repair(self, site: str, *, force: bool) -> RepairReport:
        """Raises: LogLost: nothing was changed."""
        ...


class Rebuilds(Protocol):
    """Generations of a site's index. All raise Retryable; those with a number NothingThere."""

    async def list(self, site: str) -> RebuildList: ...

    async def get(self, site: str, generation: int) -> Generation: ...

    async def start(self, site: str, order: RebuildOrder) -> Generation:
        """Returns once it is known what is built. Raises: RebuildRunning, RebuildRefused: says why."""
        ...

    async def stop(self, site: str, by: str) -> None:
        """Whoever is at work stops soon, and can be gone on from. Raises: NothingThere: nobody is."""
        ...

    async def promote(self, site: str, generation: int) -> Generation | None:
        """What is live then; None: not yet. Raises: NotVerified, StillLive, RebuildRunning, RebuildRefused."""
        ...

    async def rollback(self, site: str) -> Generation | None:
        """What is live then; None: not yet. Raises: NothingThere, RebuildRunning, RebuildRefused."""
        ...

    async def discard(self, site: str, generation: int) -> None:
        """Raises: StillLive, RebuildRunning."""
        ...


class Examples(Protocol):
    """Operators' worked examples. All raise Retryable."""

    async def of_site(self, site: str) -> Sequence[WorkedExample]:
        """The oldest first."""
        ...

    async def put(self, example: WorkedExample) -> None:
        """Add it, or replace the one of its id."""
        ...

    async def remove(self, site: str, id: str) -> bool:
        """False: there is none."""
        ...


@dataclass(frozen=True)
class Ports:
    """All of them, for `app.create_app`."""

    intake: Intake
    receipts: Receipts
    answers: Answers
    conversations: ConversationStore
    handovers: HandoverStore
    search: Search
    status: Status
    letters: Letters
    audits: Audits
    audit_runs: AuditRuns
    rebuilds: Rebuilds
    examples: Examples
    alike: ExampleComparison
    texts: TextStore
    keys: AccessKeys
    uses: LastUses
    runs: ConnectorRuns
    chat: ChatSwitches
    audit_log: AuditLog
    questions: QuestionReader
    indexed: IndexedPages
    gaps: GapReports
    evaluations: RunStore
    notes: Notes
    now: Callable[[], datetime]  # the time that all gateways go by
    counts: Callable[[Topic, int], SharedCounts]  # those that all gateways share over a topic, by periods in seconds
    titles: Titles | None = None  # None: no model writes any
