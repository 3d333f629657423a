"""What the question log needs of where it is kept; the adapter and its in-memory sibling both fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from pipelines.runtime.errors import WrongUse
from schemas.outcome import Became, LoggedQuestion, OutcomeEvent, QuestionFilter, QuestionList, VerdictEvent
from schemas.query import QuestionVector


class BadCursor(WrongUse):
    """The place in the list to go on from is not one of ours."""

    code = "bad-cursor"


class Expiring(Protocol):
    """Something kept of visitors, that goes after a time."""

    async def expire(self, before: Mapping[str, datetime]) -> Mapping[str, int]:
        """Delete what is older than its site's time. Returns: how many, by site. Raises: Retryable."""


class OutcomeStore(Expiring, Protocol):
    """Keeps one document per question (adapters.elastic.outcomes)."""

    async def put(self, event: OutcomeEvent) -> None:
        """Add to what is known of the question; the same event twice changes nothing.

        An outcome that comes after its conversation was forgotten is kept without its words.

        Raises: Retryable. Permanent: the document is refused.
        """

    async def put_verdict(self, event: VerdictEvent) -> None:
        """Add what a judge found of its answer, whichever comes first. Raises: as `put`."""

    async def forgotten(self, site: str, request_id: str) -> bool:
        """Whether its visitor has deleted the conversation, also where no outcome is known yet. Raises: Retryable."""


@dataclass(frozen=True)
class AskedHit:
    """A page that was found for a question."""

    page_id: str
    lang: str
    title: str
    url: str
    cosine: float | None  # None: found by keywords alone
    cited: bool


@dataclass(frozen=True, kw_only=True)
class GroupableQuestion:
    """What is needed of a logged question to group it with others like it: thousands are read at once."""

    request_id: str
    asked_at: datetime
    lang: str  # asked in
    question: str | None  # as asked; None: no words are kept of it
    text: str | None  # understandable by itself
    became: Became
    grade: int | None = None
    left_out: int = 0
    corrected: bool = False  # an editor has said what the answer is
    rating: Literal["up", "down"] | None = None
    hits: tuple[AskedHit, ...] = ()
    restricted: bool | None = None  # as in schemas.outcome
    vector: QuestionVector | None = None  # of `text`


class QuestionReader(Protocol):
    """Reads the question log. All raise Retryable."""

    async def find(self, site: str, wanted: QuestionFilter, limit: int, after: str | None = None) -> QuestionList:
        """The newest first, with how many there are. A question is listed a second after it was logged.

        Args:
            after: the `next` of an earlier list.

        Raises: BadCursor.
        """

    async def get(self, site: str, request_id: str) -> LoggedQuestion | None:
        """Without its vector, which says nothing to people."""

    async def asked(self, site: str, since: datetime, until: datetime, most: int) -> Sequence[GroupableQuestion]:
        """Questions of a period, the newest first; no courtesies. `most`: of them."""

    async def corrections_used(self, site: str) -> Mapping[str, int]:
        """How many questions each correction has answered, by its id."""
