"""What the gateway needs of the pipelines; the pipelines' own classes and the fakes of the tests both fit."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from pipelines.conversations.ask import Followed
from pipelines.conversations.conversations import ConversationStore
from pipelines.conversations.titles import Titles
from pipelines.evaluate.publication import RunStore
from pipelines.ingest.accept import Acceptance, Change
from pipelines.operate.audit.report import AuditReport, RepairReport
from pipelines.operate.audit.runs import AuditOrder, AuditRun
from pipelines.operate.audit_log import AuditLog
from pipelines.query.live_texts import TextStore
from pipelines.query.log.kept_reports import UnderWay
from pipelines.query.log.ports import QuestionReader
from pipelines.query.log.readable import PageRights
from pipelines.runtime.counts import SharedCounts
from pipelines.runtime.record import Lane
from schemas.access_key import CreatedKey, KeptKey, ListedKey, NewKey
from schemas.chat_switch import ChatState
from schemas.connector_run import ConnectorRun
from schemas.conversation import Feedback
from schemas.example import LikeExamples, WorkedExample
from schemas.gaps import GapReport
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

    async def settled(self, page_key: str, change: tuple[int, datetime], timeout: float) -> Receipt | None:
        """The receipt once this change (revision, when it was accepted) or a newer one is searchable, deleted or
        failed; None after `timeout` s."""
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


class AuditRuns(Protocol):
    """Audits and repairs that nobody waits for (pipelines.operate.audit.runs). All raise Retryable."""

    async def last(self, site: str) -> AuditRun | None: ...

    async def start(self, site: str, order: AuditOrder, by: str) -> AuditRun:
        """Raises: AuditRunning."""
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


class ExampleLikeness(Protocol):
    """Tells what a new example is like (pipelines.query.examples)."""

    async def like(self, new: WorkedExample) -> LikeExamples:
        """The nearest first. Raises: Retryable."""
        ...


class AccessKeys(Protocol):
    """Keys that are made and revoked while the system runs (pipelines.operate.access_keys)."""

    def known(self) -> Sequence[KeptKey]:
        """Those that are good at this moment; waits for nothing."""
        ...

    async def create(self, new: NewKey, by: str) -> CreatedKey:
        """Raises: KeyTaken, TooManyKeys, Retryable."""
        ...

    async def revoke(self, name_or_id: str) -> ListedKey:
        """Raises: UnknownKey, KeyInFile, Retryable."""
        ...

    async def list(self) -> list[ListedKey]:
        """Those of pagewire.yaml first. Raises: Retryable."""
        ...


class LastUses(Protocol):
    """When keys and connectors were used last (pipelines.operate.last_uses)."""

    def note(self, name: str) -> None:
        """Waits for nothing."""
        ...

    async def known(self) -> Mapping[str, datetime]:
        """Raises: Retryable."""
        ...


class ConnectorRuns(Protocol):
    """What came of connectors' runs (pipelines.operate.connector_runs)."""

    async def last(self) -> Mapping[tuple[str, str], ConnectorRun]:
        """By site and name. Raises: Retryable."""
        ...


class ChatSwitches(Protocol):
    """Whether sites' chats are on (pipelines.operate.chat_switches)."""

    def off(self, site: str) -> bool:
        """Waits for nothing."""
        ...

    def state(self, site: str) -> ChatState: ...

    async def throw(self, site: str, *, on: bool, by: str) -> ChatState:
        """Raises: ChatOffInFile, Retryable."""
        ...


class Notes(Protocol):
    """What visitors do about answers, for the question log (pipelines.query.log.notes). All raise Retryable."""

    async def rated(self, site: str, conversation: str, request_id: str, feedback: Feedback) -> None: ...

    async def forgotten(self, site: str, conversation: str, requests: Sequence[str], at: datetime) -> None: ...


class Gaps(Protocol):
    """What is asked and not answered (pipelines.query.log.gap_reports)."""

    async def report(
        self,
        site: str,
        days: float,
        until: datetime | None = None,
        *,
        groups: Iterable[str] | None = (),
        wait: float | None = None,
    ) -> GapReport | UnderWay:
        """Of the `days` before `until` (now), beside as many before these, with the pages that these groups may read;
        UnderWay after `wait` seconds.

        Raises:
            Retryable. Permanent: of the embedder.
        """
        ...


@dataclass(frozen=True)
class Ports:
    """All of them, for `app.create_app`."""

    intake: Intake
    receipts: Receipts
    answers: Answers
    conversations: ConversationStore
    search: Search
    status: Status
    letters: Letters
    audits: Audits
    audit_runs: AuditRuns
    rebuilds: Rebuilds
    examples: Examples
    alike: ExampleLikeness
    texts: TextStore
    keys: AccessKeys
    uses: LastUses
    runs: ConnectorRuns
    chat: ChatSwitches
    audit_log: AuditLog
    questions: QuestionReader
    indexed: IndexedPages
    gaps: Gaps
    evaluations: RunStore
    notes: Notes
    now: Callable[[], datetime]  # the time that all gateways go by
    counts: Callable[[Topic, int], SharedCounts]  # those that all gateways share over a topic, by periods in seconds
    titles: Titles | None = None  # None: no model writes any
