"""What the question log needs of where it is kept; the adapter and its in-memory sibling both fit."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from pipelines.runtime.errors import WrongUse
from schemas.outcome import LoggedQuestion, OutcomeEvent, QuestionFilter, QuestionList


class BadCursor(WrongUse):
    """The place in the list to go on from is not one of ours."""

    code = "bad-cursor"


class Expiring(Protocol):
    """Something kept of visitors, that goes after a time."""

    async def expire(self, site: str, before: datetime) -> int:
        """Delete what is older. Returns: how many. Raises: Retryable."""
        ...


class OutcomeStore(Expiring, Protocol):
    """Keeps one document per question (adapters.elastic.outcomes)."""

    async def put(self, event: OutcomeEvent) -> None:
        """Add to what is known of the question; the same event twice changes nothing.

        An outcome that comes after its conversation was forgotten is kept without its words.

        Raises:
            Retryable. Permanent: the document is refused.
        """
        ...


class QuestionReader(Protocol):
    """Reads the question log. All raise Retryable."""

    async def find(self, site: str, wanted: QuestionFilter, limit: int, after: str | None = None) -> QuestionList:
        """The newest first, with how many there are. A question is listed a second after it was logged.

        Args:
            after: the `next` of an earlier list.

        Raises:
            BadCursor.
        """
        ...

    async def get(self, site: str, request_id: str) -> LoggedQuestion | None: ...
