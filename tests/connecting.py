"""A change log in memory behind the real intake."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from urllib.parse import unquote

from pipelines.ingest.accept import Intake, newer
from pipelines.runtime.errors import PagewireError
from pipelines.runtime.record import Lane, Record
from schemas.base import Message
from schemas.head import Head
from schemas.ingest import ReceiptEvent
from schemas.page import PageChange, PageDocument
from schemas.topics import CHANGES, Topic
from wiring.settings import Settings, SiteSettings

SITE = "town"


@dataclass
class Log:
    """The topic cms.changes, on one partition."""

    changes: list[PageChange] = field(default_factory=list)
    lanes: list[Lane] = field(default_factory=list)
    garbage: list[tuple[bytes, bytes]] = field(default_factory=list)
    refuse: Callable[[PageChange], PagewireError | None] = lambda _: None
    reads: int = 0

    async def send(self, topic: Topic, key: str, message: Message, *, lane: Lane) -> None:
        if topic is CHANGES:
            assert isinstance(message, PageChange)
            if (error := self.refuse(message)) is not None:
                raise error
            self.changes.append(message)
            self.lanes.append(lane)

    def intake(self) -> Intake:
        settings = Settings(sites={SITE: SiteSettings(languages=("en", "de"))}, content_limit=10_000)
        return Intake(self, _Unindexed(), settings)

    def opened(self) -> AbstractAsyncContextManager[Log]:
        return nullcontext(self)

    async def begins(self) -> dict[int, int]:
        return {0: 0}

    async def ends(self) -> dict[int, int]:
        return {0: len(self.changes) + len(self.garbage)}

    async def read(
        self, *, since: Mapping[int, int] | None = None, until: Mapping[int, int]
    ) -> AsyncGenerator[list[Record], None]:
        self.reads += 1
        entries = self.garbage + [(change.page_key.encode(), change.encode()) for change in self.changes]
        yield [Record("cms.changes", 0, offset, key, value) for offset, (key, value) in enumerate(entries)]

    def public(self) -> dict[str, PageDocument]:
        """What visitors will find, by page key."""
        winners: dict[str, PageChange] = {}
        for change in self.changes:
            before = winners.get(change.page_key)
            if before is None or not newer(before, change):
                winners[change.page_key] = change
        return {key: change.page for key, change in winners.items() if change.page is not None}

    def titles(self) -> dict[str, str]:
        return {unquote(key.removeprefix(f"{SITE}:")): page.title for key, page in self.public().items()}


class _Unindexed:
    """An index that is far behind: nothing is known to be newer, so every race ends in the log."""

    async def heads(self, site: str, page_keys: Iterable[str]) -> Mapping[str, Head]:
        return {}

    async def receipts(self, page_keys: Iterable[str]) -> Mapping[str, ReceiptEvent]:
        return {}
