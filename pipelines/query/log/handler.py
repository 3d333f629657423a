"""The log stage: decode, keep.

query.outcomes, query.verdicts ─▶ log ─▶ Elasticsearch, a document per question
"""

from __future__ import annotations

from pipelines.query.log.ports import OutcomeStore
from pipelines.runtime.record import Record
from pipelines.runtime.stage import Handler, Sender
from schemas.outcome import OutcomeEvent, VerdictEvent


def log_handler(store: OutcomeStore) -> Handler:
    """What became of a question, and what its visitor says of it, become one document, whose id is the request's."""

    async def handle(record: Record, sender: Sender) -> None:
        await store.put(OutcomeEvent.decode(record.value))

    return handle


def verdict_handler(store: OutcomeStore) -> Handler:
    """What a judge finds of an answer joins its question's document."""

    async def handle(record: Record, sender: Sender) -> None:
        await store.put_verdict(VerdictEvent.decode(record.value))

    return handle
