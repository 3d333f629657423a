"""What the gateway needs of the pipelines; the pipelines' own classes and the fakes of the tests both fit."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from schemas.answer import AnswerEvent
from schemas.http import SearchHit, SearchKind, SystemStatus
from schemas.ingest import Receipt
from schemas.page import Op, PageDocument
from schemas.query import Question


@dataclass(frozen=True)
class Change:
    """A change as it comes in: for a delete only `page.id`, `page.lang` and `page.revision` count."""

    op: Op
    page: PageDocument


@dataclass(frozen=True)
class Acceptance:
    """A change that is durable (`revision` is its own), or one that lost to a newer revision (`superseded`)."""

    page_key: str
    revision: int
    superseded: bool = False


class Intake(Protocol):
    """Puts changes into the log."""

    async def accept(self, site: str, changes: Sequence[Change], source: str) -> list[Acceptance]:
        """In order; returns when the broker has them all.

        Raises:
            UnknownSite, Retryable (no broker), Permanent with code `too-large`.
        """
        ...


class Receipts(Protocol):
    """What became of a change."""

    async def receipt(self, site: str, lang: str, page_id: str) -> Receipt | None: ...

    async def settled(self, page_key: str, revision: int, timeout: float) -> Receipt | None:
        """The receipt once this revision (or a newer) is searchable, deleted or failed; None after `timeout` s."""
        ...


@dataclass(frozen=True)
class Followed:
    """An answer event and where the reader stands after it (opaque, goes into the SSE id)."""

    position: str
    event: AnswerEvent


class Answers(Protocol):
    """Questions in, answer events out."""

    def ask(self, question: Question) -> AsyncIterator[Followed]:
        """Put the question into the log and follow its answer; the first event is `accepted`, the last `done`."""
        ...

    def resume(self, request_id: str, position: str) -> AsyncIterator[Followed]:
        """Follow on after `position`, on any gateway.

        Raises:
            Permanent with code `bad-position`: not a position of this request.
        """
        ...


class Search(Protocol):
    async def search(
        self, site: str, query: str, *, kind: SearchKind, size: int, groups: Iterable[str] = ()
    ) -> Sequence[SearchHit]:
        """Raises: UnknownSite, Retryable."""
        ...


class Status(Protocol):
    async def status(self) -> SystemStatus: ...

    async def ready(self) -> tuple[bool, dict[str, str]]:
        """Whether Kafka, Elasticsearch and the stages can be worked with, and what is wrong per part."""
        ...
