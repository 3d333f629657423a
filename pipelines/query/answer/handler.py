"""The answer stage: decode, answer, publish.

query.retrieved ─▶ answer ─▶ answer.events
                          └▶ query.outcomes, after the last event
"""

from __future__ import annotations

import structlog

from pipelines.query.answer.answering import Answering
from pipelines.query.answer.stops import Stops
from pipelines.query.outcomes import Outcomes
from pipelines.query.publish import Published, begin
from pipelines.runtime.bus import LogReader
from pipelines.runtime.record import Record
from pipelines.runtime.stage import Handler, Sender
from schemas.query import Retrieved

logger = structlog.get_logger(__name__)


def answer_handler(answering: Answering, log: LogReader, stops: Stops, outcomes: Outcomes) -> Handler:
    """A handler that streams an answer from the passages, until it ends or the visitor stops it."""

    async def handle(record: Record, sender: Sender) -> None:
        retrieved = Retrieved.decode(record.value)
        publication = await begin(record, retrieved.request, sender, log)
        if isinstance(publication, Published):  # its writer may have died before it sent the outcome
            await outcomes.send(retrieved, publication, sender, again=True)
            return
        async with stops.watch(retrieved.request) as stopped:
            made = await answering.answer(retrieved, publication, stopped)
        await outcomes.send(retrieved, publication.published, sender, made=made)

    return handle
