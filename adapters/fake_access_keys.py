"""In-memory sibling of adapters.elastic.access_keys."""

from __future__ import annotations

from collections.abc import Sequence

from schemas.access_key import KeptKey


class FakeKeyStore:
    """Keeps keys in memory. Every call raises `error`, where it is set."""

    def __init__(self) -> None:
        self.kept: dict[str, KeptKey] = {}
        self.error: Exception | None = None
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

    def _check(self) -> None:
        if self.error is not None:
            raise self.error
