"""In-memory sibling of adapters.elastic.handovers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from pipelines.conversations.handovers import HandoverChanged, VersionedHandover
from pipelines.conversations.turns import ConversationOwner
from schemas.handover import HandoverState, StoredHandover


class FakeHandovers:
    """Keeps messages in memory. Every call raises `error`, where it is set."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], VersionedHandover] = {}
        self.error: Exception | None = None
        self._writes = 0

    async def put(self, kept: VersionedHandover) -> VersionedHandover:
        self._check()
        place = (kept.handover.site, kept.handover.reference)
        before = self.kept.get(place)
        if (before.version if before else None) != kept.version:
            raise HandoverChanged("somebody else has written this message meanwhile")
        self._writes += 1
        self.kept[place] = VersionedHandover(kept.stored, (self._writes, 1))
        return self.kept[place]

    async def get(self, site: str, reference: str) -> VersionedHandover | None:
        self._check()
        return self.kept.get((site, reference))

    async def due(self, now: datetime, limit: int) -> Sequence[VersionedHandover]:
        self._check()
        due = [(at, kept) for kept in self.kept.values() if (at := kept.stored.next_at) is not None and at <= now]
        first: dict[str, VersionedHandover] = {}
        for _, kept in sorted(due, key=lambda one: one[0]):
            first.setdefault(kept.handover.site, kept)
        return list(first.values())[:limit]

    async def of_site(
        self, site: str, state: HandoverState | None, limit: int, after: str | None = None
    ) -> tuple[Sequence[StoredHandover], str | None]:
        self._check()
        found = {_place(kept.stored): kept.stored for (of, _), kept in self.kept.items() if of == site}
        places = sorted((place for place in found if after is None or place < after), reverse=True)
        places = [place for place in places if state in (None, found[place].state)]
        return [found[place] for place in places[:limit]], places[limit - 1] if len(places) > limit else None

    async def delete(self, site: str, reference: str) -> bool:
        self._check()
        return self.kept.pop((site, reference), None) is not None

    async def erase(self, owner: ConversationOwner, conversation_id: str | None = None) -> int:
        self._check()
        return self._drop(
            lambda kept: (
                (kept.handover.site, kept.stored.owner) == (owner.site, owner.name)
                and conversation_id in (None, kept.stored.conversation_id)
            )
        ).total()

    async def expire(self, before: Mapping[str, datetime]) -> Mapping[str, int]:
        self._check()
        return self._drop(lambda kept: kept.handover.site in before and kept.handover.at < before[kept.handover.site])

    def _drop(self, wanted: Callable[[VersionedHandover], bool]) -> Counter[str]:
        gone = [place for place, kept in self.kept.items() if wanted(kept)]
        for place in gone:
            del self.kept[place]
        return Counter(site for site, _ in gone)

    def _check(self) -> None:
        if self.error is not None:
            raise self.error


def _place(stored: StoredHandover) -> str:
    return f"{stored.handover.at.isoformat()}/{stored.handover.reference}"
