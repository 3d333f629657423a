"""The log stage: decode, keep.

query.outcomes, query.verdicts ─▶ log ─▶ Elasticsearch, a document per question
"""

from __future__ import annotations

from collections.abc import Callable

from pipelines.query.log.ports import OutcomeStore
from pipelines.query.masks import Masks
from pipelines.runtime.record import Record
from pipelines.runtime.stage import Handler, Sender
from schemas.outcome import Forgotten, Outcome, OutcomeEvent, Rated, VerdictEvent

Keeping = Callable[[], Masks]  # raises Retryable while it is unknown what was changed since the start


def log_handler(store: OutcomeStore, keeping: Keeping) -> Handler:
    """The outcome of a question and its visitor's feedback become one document, whose id is the request's.

    What its site keeps by now counts, too: events may have waited here for days. What is to be forgotten is, always. Of
    a site that only the sender knows, as a new one while workers are restarted in turn, it is kept as it was sent.
    """

    async def handle(record: Record, sender: Sender) -> None:
        event = OutcomeEvent.decode(record.value)
        masks = keeping()
        if isinstance(event.event, Forgotten) or not masks.knows(event.site) or masks.logs_prompts(event.site):
            await store.put(event)
        elif masks.logs_words(event.site):
            await store.put(_without_prompts(event))
        elif masks.logs(event.site):
            await store.put(_wordless(event))

    return handle


def _without_prompts(event: OutcomeEvent) -> OutcomeEvent:
    said = event.event
    if not isinstance(said, Outcome) or not (said.calls or said.doubted):
        return event
    return event.model_copy(update={"event": said.model_copy(update={"calls": (), "doubted": ()})})


def _wordless(event: OutcomeEvent) -> OutcomeEvent:
    said = event.event
    if isinstance(said, Rated):
        said = Rated(feedback=said.feedback.model_copy(update={"comment": None}))
    elif isinstance(said, Outcome):
        said = said.wordless
    return event.model_copy(update={"event": said})


def verdict_handler(store: OutcomeStore) -> Handler:
    """What a judge finds of an answer joins its question's document."""

    async def handle(record: Record, sender: Sender) -> None:
        await store.put_verdict(VerdictEvent.decode(record.value))

    return handle
