"""What the driver knows: every change it sent, what it was answered, what it broke and when."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from schemas.page import FieldName, Op

Order = tuple[int, bool]  # what decides between two changes: revision, then delete over upsert


class Answer(StrEnum):
    """What the driver was told of a change."""

    ACCEPTED = "accepted"
    SUPERSEDED = "superseded"
    TAKEN = "taken"  # accepted or superseded: a bulk counts, and does not say which
    REFUSED = "refused"  # nothing happened
    UNKNOWN = "unknown"  # no answer, or one that promises nothing: it may have been accepted


@dataclass
class Sent:
    """One change as it was sent. Times are seconds since the storm began."""

    number: int  # also its marker in the page's texts and URL
    page: str  # page key
    op: Op
    given: int | None  # the revision it was sent with
    fields: Mapping[FieldName, str]  # what must be found; {} for a delete
    kind: str  # why it was sent: save, late, duplicate, ...
    via: str
    at: float
    answer: Answer = Answer.UNKNOWN
    answered_at: float | None = None
    revision: int | None = None  # as answered
    detail: str = ""

    @property
    def order(self) -> Order | None:
        """None as long as nobody said which revision it got."""
        revision = self.given if self.revision is None else self.revision
        return None if revision is None else (revision, self.op == "delete")

    def __str__(self) -> str:
        revision = self.revision if self.given is None else f"{self.given} (given)"
        until = "" if self.answered_at is None else f" .. {self.answered_at:.2f}"
        return (
            f"{self.at:8.2f}{until} #{self.number} {self.op} {self.kind} revision {revision} via {self.via}: "
            f"{self.answer} {self.detail}".rstrip()
        )


@dataclass(frozen=True)
class Event:
    """Something the driver did to the system, or saw."""

    at: float
    what: str

    def __str__(self) -> str:
        return f"{self.at:8.2f} {self.what}"


@dataclass(frozen=True)
class Poison:
    """Bytes put straight into a topic that no stage can work on."""

    topic: str  # without the prefix
    key: bytes
    value: bytes
    what: str


@dataclass
class History:
    """Grows while the storm lasts; read by the checker."""

    sent: list[Sent] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    poison: list[Poison] = field(default_factory=list)
    broken: list[tuple[str, str]] = field(default_factory=list)  # (page, promise that was broken on the way)
    faults: int = 0
    began: float = field(default_factory=time.monotonic)

    def now(self) -> float:
        return time.monotonic() - self.began

    def send(
        self, page: str, op: Op, given: int | None, fields: Mapping[FieldName, str], kind: str, via: str, number: int
    ) -> Sent:
        """Before a change goes out: what is not written down cannot be missed."""
        sent = Sent(number, page, op, given, fields, kind, via, self.now())
        self.sent.append(sent)
        return sent

    def answered(self, sent: Sent, answer: Answer, revision: int | None = None, detail: str = "") -> None:
        sent.answer, sent.revision, sent.detail, sent.answered_at = answer, revision, detail, self.now()

    def note(self, what: str) -> Event:
        event = Event(self.now(), what)
        self.events.append(event)
        return event

    def of(self, page: str) -> Iterator[Sent]:
        return (sent for sent in self.sent if sent.page == page)

    def count(self, *answers: Answer) -> int:
        return sum(sent.answer in answers for sent in self.sent)
