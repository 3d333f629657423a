"""What the gateway needs of the pipelines; the pipelines' own classes and the fakes of the tests both fit."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from pipelines.ingest.accept import Acceptance, Change
from pipelines.query.ask import Followed
from schemas.http import SearchHit, SearchKind, SystemStatus
from schemas.ingest import Receipt
from schemas.query import Question

__all__ = ["Acceptance", "Answers", "Change", "Followed", "Intake", "Ports", "Receipts", "Search", "Status"]


class Intake(Protocol):
    """Puts changes into the log."""

    async def accept(self, site: str, changes: Sequence[Change], source: str) -> list[Acceptance]:
        """In order; returns when the broker has them all.

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

    async def settled(self, page_key: str, revision: int, timeout: float) -> Receipt | None:
        """The receipt once this revision (or a newer) is searchable, deleted or failed; None after `timeout` s."""
        ...


class Answers(Protocol):
    """Questions in, answer events out. Closing the generator stops following, not the answer."""

    def ask(self, question: Question) -> AsyncGenerator[Followed, None]:
        """Put the question into the log and follow its answer, from `accepted` to `done`.

        Raises:
            Retryable: the broker does not take it.
        """
        ...

    def resume(self, request_id: str, position: str) -> AsyncGenerator[Followed, None]:
        """Follow on after `position`, on any gateway; an empty position is before the first event.

        Raises:
            BadPosition: not a position of this request.
            Retryable: the log cannot be read.
        """
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

    async def status(self) -> SystemStatus: ...

    async def ready(self) -> tuple[bool, dict[str, str]]:
        """Whether Kafka, Elasticsearch and the stages can be worked with, and what is wrong per part."""
        ...


@dataclass(frozen=True)
class Ports:
    """All of them, for `app.create_app`."""

    intake: Intake
    receipts: Receipts
    answers: Answers
    search: Search
    status: Status
