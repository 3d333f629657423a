"""In-memory sibling of adapters.elastic.conversations; it passes the same contract tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from pipelines.conversations.conversations import ConversationChanged, VersionedConversation
from pipelines.conversations.turns import ConversationOwner, summary
from pipelines.runtime.errors import PagewireError
from schemas.conversation import ConversationSummary


@dataclass
class FakeConversations:
    """Keeps conversations in a dict; every write counts as a version."""

    error: PagewireError | None = None  # raised by everything
    kept: dict[tuple[ConversationOwner, str], VersionedConversation] = field(default_factory=dict)
    _writes: int = 0

    async def get(self, owner: ConversationOwner, conversation_id: str) -> VersionedConversation | None:
        self._fail()
        return self.kept.get((owner, conversation_id))

    async def of_answer(self, owner: ConversationOwner, request_id: str) -> VersionedConversation | None:
        self._fail()
        for (whose, _), kept in self.kept.items():
            if whose == owner and any(turn.request_id == request_id for turn in kept.conversation.turns):
                return kept
        return None

    async def with_answer(self, site: str, request_id: str) -> VersionedConversation | None:
        self._fail()
        for (whose, _), kept in self.kept.items():
            if whose.site == site and any(turn.request_id == request_id for turn in kept.conversation.turns):
                return kept
        return None

    async def put(self, kept: VersionedConversation, *, at_once: bool = False) -> VersionedConversation:
        self._fail()
        conversation = kept.conversation
        place = (ConversationOwner(conversation.site, conversation.owner), conversation.conversation_id)
        before = self.kept.get(place)
        if (before.version if before else None) != kept.version:
            raise ConversationChanged("somebody else has written this conversation meanwhile")
        self._writes += 1
        self.kept[place] = replace(kept, version=(self._writes, 1))
        return self.kept[place]

    async def delete(self, owner: ConversationOwner, conversation_id: str) -> bool:
        self._fail()
        return self.kept.pop((owner, conversation_id), None) is not None

    async def list(self, owner: ConversationOwner, limit: int) -> list[ConversationSummary]:
        self._fail()
        mine = [summary(kept.conversation) for (whose, _), kept in self.kept.items() if whose == owner]
        return sorted(mine, key=lambda one: one.updated_at, reverse=True)[:limit]

    async def expire(self, before: Mapping[str, datetime]) -> Mapping[str, int]:
        self._fail()
        old = [
            place
            for place, kept in self.kept.items()
            if place[0].site in before and kept.conversation.updated_at < before[place[0].site]
        ]
        for place in old:
            del self.kept[place]
        return Counter(owner.site for owner, _ in old)

    def _fail(self) -> None:
        if self.error is not None:
            raise self.error
