"""Conversations: a visitor's questions and answers, as they are stored, and as HTTP shows them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AwareDatetime, Field, StringConstraints

from schemas.answer import AnswerMarks, Citation
from schemas.base import Lang, PageId, SiteId, Wire, optional
from schemas.labels import Labels
from schemas.page import FieldName, PageStamp
from schemas.query import Grade, PendingCall, RequestId, SourceKind

MAX_TITLE = 200  # characters
MAX_COMMENT = 2_000  # characters

Title = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_TITLE)]
TurnState = Literal["pending", "answered", "stopped", "failed"]


class CitedSource(PageStamp):
    """The target of an answer's citation; the passage itself is in the index only."""

    n: int = Field(ge=1)
    page_id: PageId
    lang: Lang
    title: str
    url: str
    field: FieldName
    ord: int = Field(ge=0)
    kind: SourceKind = optional("page", description="As in the answer.")


Rating = Literal["up", "down"]


class FeedbackOrder(Wire):
    """A visitor's feedback on an answer. The newest counts."""

    rating: Rating
    comment: Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_COMMENT)] | None = None


class Feedback(FeedbackOrder):
    """As it is stored."""

    at: AwareDatetime


class AskedTurn(AnswerMarks):
    """A question and its outcome."""

    request_id: RequestId
    question: str
    lang: Lang
    asked_at: AwareDatetime
    state: TurnState = Field(description="`pending`: the answer is under way.")
    rephrased: str | None = None
    grade: Grade | None = None
    answer: str = ""
    citations: tuple[Citation, ...] = ()
    sources: tuple[CitedSource, ...] = Field(default=(), description="Those the answer cites.")
    extractive: bool = False
    error: str | None = Field(default=None, description="Why there is no answer: a code, for programs.")
    feedback: Feedback | None = None
    withheld: bool = Field(
        default=False, description="It was answered to access groups that the caller does not have: not shown now."
    )


class StoredTurn(AskedTurn):
    """As it is stored."""

    deadline: AwareDatetime = Field(description="After this no stage works on the answer any more.")
    position: str = Field(description="A place in `answer.events` before the answer.")
    groups: tuple[str, ...] = Field(default=(), description="Access groups whose pages the answer could tell of.")
    labels: Labels = optional({}, description="Of the pages that it was to be answered from.")
    guessed: bool = Field(default=False, description="Its language was neither given nor shown by its words.")
    removed: bool = Field(default=False, description="Taken back: shown no more.")
    pending: PendingCall | None = optional(description="The call of a tool for which the answer asks.")
    replaces: RequestId | None = Field(
        default=None, description="The turn that this one asks again; shown where nothing comes of this one."
    )


class _Titled(Wire):
    conversation_id: RequestId
    title: str
    created_at: AwareDatetime
    updated_at: AwareDatetime


class Conversation(_Titled):
    """As it is stored, under its owner."""

    site: SiteId
    owner: str
    turns: tuple[StoredTurn, ...]


class ConversationSummary(_Titled):
    """A line of a list."""

    turns: int = Field(description="Questions that are shown.")


class ConversationList(Wire):
    """By the day of the last question, in the visitor's time zone; newest first."""

    today: tuple[ConversationSummary, ...] = ()
    yesterday: tuple[ConversationSummary, ...] = ()
    last_week: tuple[ConversationSummary, ...] = Field(default=(), description="The seven days before today.")
    older: tuple[ConversationSummary, ...] = ()


class ConversationDetail(_Titled):
    """A conversation as its visitor sees it."""

    turns: tuple[AskedTurn, ...]


class Rename(Wire):
    """A new title."""

    title: Title
