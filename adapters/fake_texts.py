"""In-memory sibling of adapters.elastic.texts."""

from __future__ import annotations

from schemas.text_version import TextKind, TextVersion


class FakeTextStore:
    """Keeps texts in memory. Every call raises `error`, where it is set."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str, str, int], TextVersion] = {}
        self.error: Exception | None = None
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

    def _check(self) -> None:
        if self.error is not None:
            raise self.error
