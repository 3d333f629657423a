"""The answer stage: decode, answer, publish.

query.retrieved ─▶ answer ─▶ answer.events"""

from __future__ import annotations

import structlog

from pipelines.query.answer.answering import Answering
from pipelines.query.answer.stops import Stops
from pipelines.query.publish import begin
from pipelines.runtime.bus import LogReader
from pipelines.runtime.embedder import SiteEmbedders
from pipelines.runtime.record import Record
from pipelines.runtime.stage import Handler, Sender
from schemas.query import Retrieved

logger = structlog.get_logger(__name__)


def answer_handler(answering: Answering, models: SiteEmbedders, log: LogReader, stops: Stops) -> Handler:
    """Passages become an answer, streamed, until it is written or the visitor stops it."""

    async def handle(record: Record, sender: Sender) -> None:
        retrieved = Retrieved.decode(record.value)
        publication = await begin(record, retrieved.request, sender, log)
        if publication is None:
            return
        async with stops.watch(retrieved.request) as stopped:
            embedder = await models.for_site(retrieved.request.site)
            await answering.answer(retrieved, embedder, publication, stopped)

    return handle
