"""In-memory siblings of the small stores of adapters.elastic; they pass the same contract tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from pipelines.conversations.handovers import HandoverChanged, VersionedHandover
from pipelines.conversations.turns import ConversationOwner
from pipelines.evaluate.publication import MAX_RUNS
from pipelines.operate.states import Kind, State
from schemas.access_key import KeptKey
from schemas.audit_log import AuditEntry, AuditFilter, AuditLogPage
from schemas.base import Wire
from schemas.evaluation import ListedRun, PublishedRun
from schemas.handover import HandoverState, StoredHandover
from schemas.text_version import TextKind, TextVersion


class FakeStore:
    """Every call raises `error`, where it is set."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    def _check(self) -> None:
        if self.error is not None:
            raise self.error


class FakeKeyStore(FakeStore):
    """Keeps keys in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[str, KeptKey] = {}
        self.reads = 0  # times

    async def all(self) -> Sequence[KeptKey]:
        self.reads += 1
        self._check()
        return list(self.kept.values())

    async def add(self, key: KeptKey) -> bool:
        self._check()
        return self.kept.setdefault(key.name, key) is key

    async def remove(self, name: str) -> bool:
        self._check()
        return self.kept.pop(name, None) is not None


class FakeAuditLog(FakeStore):
    """Keeps entries in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[AuditEntry] = []

    async def put(self, entry: AuditEntry) -> None:
        self._check()
        self.kept.append(entry)

    async def find(self, wanted: AuditFilter, limit: int, after: str | None = None) -> AuditLogPage:
        self._check()
        newest = sorted(self.kept, key=lambda entry: entry.id, reverse=True)
        found = [entry for entry in newest if wanted.fits(entry) and (after is None or entry.id < after)]
        return AuditLogPage(entries=tuple(found[:limit]), next=found[limit - 1].id if len(found) > limit else None)

    async def expire(self, before: datetime) -> int:
        old = [entry for entry in self.kept if entry.at < before]
        self.kept = [entry for entry in self.kept if entry.at >= before]
        return len(old)


class FakeRuns(FakeStore):
    """Keeps published runs in a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], PublishedRun] = {}

    async def put(self, run: PublishedRun) -> None:
        self.kept[run.site, run.id] = run

    async def of_site(self, site: str, dataset: str | None = None) -> list[ListedRun]:
        found = [run for (of, _), run in self.kept.items() if of == site and dataset in (None, run.dataset)]
        listed = [ListedRun.model_validate(run.model_dump(exclude={"results"})) for run in found]
        return sorted(listed, key=lambda run: run.begun, reverse=True)[:MAX_RUNS]

    async def get(self, site: str, id: str) -> PublishedRun | None:
        return self.kept.get((site, id))

    async def remove(self, site: str, id: str) -> bool:
        return self.kept.pop((site, id), None) is not None

    async def expire(self, before: Mapping[str, datetime]) -> Mapping[str, int]:
        old = [(site, id) for (site, id), run in self.kept.items() if site in before and run.begun < before[site]]
        for place in old:
            del self.kept[place]
        return Counter(site for site, _ in old)


class FakeHandovers(FakeStore):
    """Keeps messages in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], VersionedHandover] = {}
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


def _place(stored: StoredHandover) -> str:
    return f"{stored.handover.at.isoformat()}/{stored.handover.reference}"


class FakeStates(FakeStore):
    """Keeps states in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[Kind, str], State] = {}
        self.reads = 0
        self.writes = 0

    async def all(self, kind: Kind) -> Sequence[State]:
        self.reads += 1
        self._check()
        return [state for (other, _), state in self.kept.items() if other == kind]

    async def get(self, kind: Kind, name: str) -> State | None:
        self._check()
        return self.kept.get((kind, name))

    async def put(self, kind: Kind, name: str, value: Wire) -> None:
        await self.replace(kind, name, value, self.kept.get((kind, name)))

    async def replace(self, kind: Kind, name: str, value: Wire, before: State | None) -> State | None:
        self._check()
        now = self.kept.get((kind, name))
        if (now.version if now else None) != (before.version if before else None):
            return None
        self.writes += 1
        self.kept[kind, name] = State(name, value.dumped(), (self.writes, 1))
        return self.kept[kind, name]


class FakeTextStore(FakeStore):
    """Keeps texts in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str, str, int], TextVersion] = {}
        self.reads = 0  # of all texts

    async def state(self) -> str:
        self._check()
        return str(len(self.kept))

    async def live(self, site: str | None = None) -> list[TextVersion]:
        self._check()
        self.reads += 1
        newest: dict[tuple[str, str, str], TextVersion] = {}
        for (of, kind, name, number), one in sorted(self.kept.items()):
            if not one.candidate and site in (None, of):
                assert number == one.version
                newest[of, kind, name] = one
        return list(newest.values())

    async def changed(self, kind: TextKind, name: str) -> set[str]:
        self._check()
        return {of for of, *text, _ in self.kept if text == [kind, name]}

    async def versions(self, site: str, kind: TextKind, name: str) -> list[TextVersion]:
        self._check()
        found = [one for key, one in self.kept.items() if key[:3] == (site, kind, name)]
        return sorted(found, key=lambda one: -one.version)

    async def add(self, version: TextVersion) -> bool:
        self._check()
        key = (version.site, version.kind, version.name, version.version)
        return self.kept.setdefault(key, version) is version
