"""Publish: writes all events of an answer. Each worker that writes one is an attempt, and the latest attempt wins.

Events of an attempt are numbered without gaps. If a worker dies while it answers, the next worker starts the answer
again as the next attempt, with a `restart` event first. A finished answer is not written again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from pipelines.runtime.bus import LogReader
from pipelines.runtime.record import Record
from pipelines.runtime.stage import Sender
from schemas.answer import Answered, AnswerEvent, Citation, Done, Event, Failed, Restart, Token
from schemas.query import Question
from schemas.topics import ANSWERS

CLOCK_SKEW_MS = 60_000  # allowed difference between the clocks of machines that write the topics


@dataclass(frozen=True)
class Published:
    """A finished answer: its last event and the time of its first word. None where the log does not have them."""

    end: Answered | Failed | None
    first_word_at: datetime | None


class Publication:
    """The events of one attempt at one request. `text` and `citations`: the answer as the visitor sees it."""

    def __init__(self, sender: Sender, request: Question, attempt: int) -> None:
        self._sender = sender
        self._request_id = request.request_id
        self._site = request.site
        self._attempt = attempt
        self._seq = 0
        self._held: list[AnswerEvent] = []  # not written yet
        self.text = ""
        self.citations: list[Citation] = []
        self._end: Answered | Failed | None = None
        self._first_word_at: datetime | None = None

    @property
    def published(self) -> Published:
        return Published(self._end, self._first_word_at)

    async def restart(self) -> None:
        """Discard the written text: the answer starts again as the next attempt."""
        self._attempt += 1
        self._seq = 0
        self.text, self.citations = "", []
        await self.put(Restart(attempt=self._attempt))

    async def put(self, *events: Event, more: bool = False) -> None:
        """Write events in order; returns when the broker has them.

        Args:
            more: hold these events back and write them together with the next ones.
        """
        for event in events:
            self._held.append(
                AnswerEvent(
                    request_id=self._request_id, site=self._site, attempt=self._attempt, seq=self._seq, event=event
                )
            )
            self._seq += 1
            if isinstance(event, Token):
                self.text += event.text
            elif isinstance(event, Citation):
                self.citations.append(event)
        if more or not self._held:
            return
        held, self._held = self._held, []
        await self._sender.send_all(ANSWERS, self._request_id, held)
        if any(isinstance(each.event, Token) for each in held):
            self._first_word_at = self._first_word_at or datetime.now(UTC)
        ends = [each.event for each in held if isinstance(each.event, Answered | Failed)]
        self._end = ends[-1] if ends else self._end


def earliest(request: Question) -> int:
    """The earliest time (milliseconds since 1970) at which an event of the request may have been written."""
    return round(request.asked_at.timestamp() * 1000) - CLOCK_SKEW_MS


async def begin(record: Record, request: Question, sender: Sender, log: LogReader) -> Publication | Published:
    """A publication for the request in `record`, or the finished answer if the log has one."""
    if record.fresh:
        return Publication(sender, request, 1)
    begins = (request.begins.partition, request.begins.offset) if request.begins else None
    records = await log.of_key(request.request_id, earliest(request), begins=begins)
    written = [AnswerEvent.decode(each.value) for each in records]
    if any(event.final for event in written):
        return _published(records, written)
    last = max((event.attempt for event in written), default=0)
    publication = Publication(sender, request, max(1, last))
    if last:
        await publication.restart()
    return publication


async def fail(record: Record, request: Question, sender: Sender, log: LogReader, code: str, message: str) -> Published:
    """End the answer with an error message, unless it has ended. Returns: the finished answer."""
    # Not fresh: a failed try may have written some events.
    publication = await begin(replace(record, fresh=False), request, sender, log)
    if isinstance(publication, Published):
        return publication
    await publication.put(Failed(code=code, message=message), Done())
    return publication.published


def _published(records: Sequence[Record], written: Sequence[AnswerEvent]) -> Published:
    """The finished answer of the latest attempt that has ended."""
    ends = [event for event in written if isinstance(event.event, Answered | Failed)]
    last = max(ends, key=lambda event: event.attempt, default=None)
    words = [each.timestamp_ms for each, event in zip(records, written, strict=True) if isinstance(event.event, Token)]
    return Published(
        last.event if last and isinstance(last.event, Answered | Failed) else None,
        datetime.fromtimestamp(min(words) / 1000, UTC) if words else None,
    )
