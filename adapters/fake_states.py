"""In-memory sibling of adapters.elastic.states."""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.operate.states import Kind, State
from schemas.base import Wire


class FakeStates:
    """Keeps states in memory. Every call raises `error`, where it is set."""

    def __init__(self) -> None:
        self.kept: dict[tuple[Kind, str], State] = {}
        self.error: Exception | None = None
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

    def _check(self) -> None:
        if self.error is not None:
            raise self.error
