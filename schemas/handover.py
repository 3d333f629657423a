"""Handovers: messages that visitors leave for a person, as HTTP takes them and as they are stored."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AwareDatetime, Field, StringConstraints

from schemas.base import GivenLang, Lang, SiteId, Wire, form
from schemas.query import RequestId

MAX_NAME, MAX_REPLY, MAX_MESSAGE = 200, 254, 4_000  # characters; RFC 5321 allows an address 254

# One line each: both stand in headers of a mail.
_Name = Annotated[str, form(r"^[^\x00-\x1f\x7f]*$", "one line", strip_whitespace=True, max_length=MAX_NAME)]
# Neither has what means something else in a header.
_MAIL = r'[^\s@<>()\[\]\\,;:"\x00-\x1f\x7f]{1,64}@[^\s@<>()\[\]\\,;:"\x00-\x1f\x7f]{1,190}'
_TELEPHONE = r"[+(]?[0-9][0-9 ()/.-]{4,30}"
_Reply = Annotated[
    str,
    form(
        f"^(?:{_MAIL}|{_TELEPHONE})$", "a mail address or a phone number", strip_whitespace=True, max_length=MAX_REPLY
    ),
]
_Message = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_MESSAGE)]
Reference = Annotated[str, form(r"^[0-9A-Z]{4}-[0-9A-Z]{4}$", "a reference such as `7K2M-Q9XD`")]

HandoverState = Literal["waiting", "delivered", "failed"]


class HandoverOrder(Wire):
    """A visitor's message to a person."""

    name: _Name = ""
    reply_to: _Reply = Field(description="Where to answer: a mail address or a telephone number.")
    message: _Message
    conversation_id: RequestId | None = Field(
        default=None, description="The conversation that goes along, because the visitor says so; null: none."
    )
    lang: GivenLang | None = Field(default=None, description="Of the visitor; default: the site's first.")


class HandoverTaken(Wire):
    """The message is kept, and will be delivered."""

    reference: Reference = Field(description="For the visitor to name when they ask again.")


class HandoverTurn(Wire):
    """A question and its answer, as they go along."""

    question: str
    answer: str


class Handover(Wire):
    """What is delivered of a message: the body of the webhook, as JSON."""

    reference: Reference
    site: SiteId
    at: AwareDatetime
    lang: Lang
    name: str
    reply_to: str
    message: str
    conversation: tuple[HandoverTurn, ...] = ()

    @property
    def mail(self) -> str | None:
        """The address to answer by mail; None: it is a telephone number."""
        return self.reply_to if "@" in self.reply_to else None


class ListedHandover(Wire):
    """A message and its delivery, for operators."""

    handover: Handover
    state: HandoverState
    tries: int = Field(default=0, ge=0, description="Attempts to deliver it since it was last waiting.")
    next_at: AwareDatetime | None = Field(default=None, description="Of the next attempt; null: there is none.")
    done_at: AwareDatetime | None = Field(default=None, description="It was delivered, or given up.")
    reason: str = Field(default="", description="Why the last attempt failed.")


class StoredHandover(ListedHandover):
    """As it is stored."""

    owner: str = Field(description="Whose message it is, as of a conversation.")
    conversation_id: RequestId | None = None


class HandoverList(Wire):
    """A page of messages, the newest first."""

    handovers: tuple[ListedHandover, ...]
    next: str | None = Field(default=None, description="The place to read on from; null: that is all.")
