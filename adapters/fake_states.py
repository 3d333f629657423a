"""The in-memory sibling of adapters.elastic.states."""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.operate.states import Kind, State
from schemas.base import Wire


class FakeStates:
    """Keeps them in memory. `error`: it is away."""

    def __init__(self) -> None:
        self.kept: dict[tuple[Kind, str], State] = {}
        self.error: Exception | None = None
        self.looked = 0  # times
        self.written = 0  # times

    async def all(self, kind: Kind) -> Sequence[State]:
        self.looked += 1
        self._there()
        return [state for (other, _), state in self.kept.items() if other == kind]

    async def get(self, kind: Kind, name: str) -> State | None:
        self._there()
        return self.kept.get((kind, name))

    async def put(self, kind: Kind, name: str, value: Wire) -> None:
        await self.replace(kind, name, value, self.kept.get((kind, name)))

    async def replace(self, kind: Kind, name: str, value: Wire, before: State | None) -> State | None:
        self._there()
        now = self.kept.get((kind, name))
        if (now.version if now else None) != (before.version if before else None):
            return None
        self.written += 1
        self.kept[kind, name] = State(name, value.dumped(), (self.written, 1))
        return self.kept[kind, name]

    def _there(self) -> None:
        if self.error is not None:
            raise self.error
