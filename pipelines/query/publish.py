"""Publish: all events of an answer go through here. A second worker's carry another attempt, and the later one wins.

Events of an attempt are numbered without gaps. A request whose answer was begun by a worker that died is begun again
as the next attempt, announced by `restart`; one that was answered to the end is left alone.
"""

from __future__ import annotations

from dataclasses import replace

from pipelines.runtime.bus import LogReader
from pipelines.runtime.record import Record
from pipelines.runtime.stage import Sender
from schemas.answer import AnswerEvent, Citation, Done, Event, Failed, Restart, Token
from schemas.query import Question
from schemas.topics import ANSWERS

CLOCK_SKEW_MS = 60_000  # between the machines that write the topics


class Publication:
    """The events of one attempt at one request. `text` and `citations` are what the visitor has of the answer."""

    def __init__(self, sender: Sender, request: Question, attempt: int) -> None:
        self._sender = sender
        self._request_id = request.request_id
        self._site = request.site
        self._attempt = attempt
        self._seq = 0
        self.text = ""
        self.citations: list[Citation] = []

    async def restart(self) -> None:
        """Take back what was written so far: the answer begins again as the next attempt."""
        self._attempt += 1
        self._seq = 0
        self.text, self.citations = "", []
        await self.put(Restart(attempt=self._attempt))

    async def put(self, *events: Event) -> None:
        """Write events in order; returns when the broker has them."""
        for event in events:
            message = AnswerEvent(
                request_id=self._request_id, site=self._site, attempt=self._attempt, seq=self._seq, event=event
            )
            self._seq += 1
            await self._sender.send(ANSWERS, self._request_id, message)
            if isinstance(event, Token):
                self.text += event.text
            elif isinstance(event, Citation):
                self.citations.append(event)


def earliest(request: Question) -> int:
    """Before this (milliseconds since 1970) nobody has written of the request."""
    return round(request.asked_at.timestamp() * 1000) - CLOCK_SKEW_MS


async def begin(record: Record, request: Question, sender: Sender, log: LogReader) -> Publication | None:
    """Begin to answer the request in `record`; None when it was answered already."""
    if record.fresh:
        return Publication(sender, request, 1)
    written = [AnswerEvent.decode(r.value) for r in await log.of_key(request.request_id, earliest(request))]
    if any(event.final for event in written):
        return None
    last = max((event.attempt for event in written), default=0)
    publication = Publication(sender, request, max(1, last))
    if last:
        await publication.restart()
    return publication


async def fail(record: Record, request: Question, sender: Sender, log: LogReader, code: str, message: str) -> None:
    """End the answer with an error in plain words, unless it has ended."""
    # Tries have failed by now: the record is fresh no more, and some of the answer may be written.
    publication = await begin(replace(record, fresh=False), request, sender, log)
    if publication is not None:
        await publication.put(Failed(code=code, message=message), Done())
