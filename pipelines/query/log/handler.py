"""The log stage: decode, keep.

query.outcomes, query.verdicts ─▶ log ─▶ Elasticsearch, a document per question

Notes: what visitors do about answers they had, said by the gateway.

feedback           ─▶ query.outcomes ─▶ log ─▶ the question's document
a deleted conversation ─▶ its documents lose their words at once
                       └▶ query.outcomes: so that a replay erases them again
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime

from pipelines.query.live.site_privacy import SitePrivacy
from pipelines.query.log.ports import OutcomeStore
from pipelines.query.masks import Masks
from pipelines.runtime.errors import Retryable
from pipelines.runtime.record import Record
from pipelines.runtime.settings import Site
from pipelines.runtime.stage import Handler, Sender
from schemas.conversation import Feedback
from schemas.outcome import Forgotten, Outcome, OutcomeEvent, Rated, VerdictEvent
from schemas.topics import OUTCOMES

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


class Notes:
    """One per process."""

    def __init__(
        self, sender: Sender, store: OutcomeStore, sites: Mapping[str, Site], privacy: SitePrivacy | None = None
    ) -> None:
        self._sender = sender
        self._store = store
        self._masks = Masks(sites, privacy)

    async def rated(self, site: str, conversation: str, request_id: str, feedback: Feedback) -> None:
        """Say what the visitor thinks of an answer, if the site logs questions. Raises: Retryable: not confirmed."""
        if self._masks.logs(site):
            kept = feedback.model_copy(update={"comment": self._masks.kept(site, feedback.comment)})
            said = Rated(feedback=kept)
            event = OutcomeEvent(site=site, request_id=request_id, conversation=conversation, event=said)
            await self._sender.send(OUTCOMES, event.key, event)

    async def forgotten(self, site: str, conversation: str, requests: Sequence[str], at: datetime) -> None:
        """Erase the words of a conversation's questions, also of those whose outcome is still on its way.

        Whether the site logs questions now does not matter: it may have done so before.

        Args:
            conversation: its hash.
            requests: of its questions.

        Raises: Retryable: they are not erased.
        """
        if not requests:
            return
        said = Forgotten(at=at, requests=tuple(requests))
        event = OutcomeEvent(site=site, request_id=requests[-1], conversation=conversation, event=said)
        await self._store.put(event)
        with suppress(Retryable):  # they are erased; only a replay of this week's topic would not know
            await self._sender.send(OUTCOMES, event.key, event)
