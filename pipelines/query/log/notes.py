"""Notes: what visitors do about answers they had, said by the gateway.

feedback           ─▶ query.outcomes ─▶ log ─▶ the question's document
a deleted conversation ─▶ its documents lose their words at once
                       └▶ query.outcomes: so that a replay erases them again
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime

from pipelines.query.live.site_privacy import SitePrivacy
from pipelines.query.log.ports import OutcomeStore
from pipelines.query.masks import Masks
from pipelines.runtime.errors import Retryable
from pipelines.runtime.settings import Site
from pipelines.runtime.stage import Sender
from schemas.conversation import Feedback
from schemas.outcome import Forgotten, OutcomeEvent, Rated
from schemas.topics import OUTCOMES


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
