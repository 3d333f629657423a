"""A system for tests of backup and restore: a log and the indexes that are plain to see."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipelines.operate.backup.backup import About, Stock, back_up
from pipelines.operate.backup.folder import BackupFolder
from pipelines.operate.backup.manifest import BackupDocument, Manifest, PartName, PutBack
from pipelines.operate.backup.newest import change_of
from pipelines.operate.backup.restore import Restored, Target, restore
from pipelines.runtime.record import Headers, Lane, Record
from schemas.ingest import ReceiptEvent
from schemas.page import PageChange
from schemas.topics import RECEIPTS, Topic
from tests.making import NOON

NAMES: tuple[PartName, ...] = ("conversations", "questions", "examples", "texts", "switches")


@dataclass
class Scan:
    """A log of two partitions."""

    records: list[Record]

    async def begins(self) -> dict[int, int]:
        return {0: 0, 1: 0}

    async def ends(self) -> dict[int, int]:
        ends = {0: 0, 1: 0}
        return ends | {record.partition: record.offset + 1 for record in self.records}

    async def read(
        self, *, since: Mapping[int, int] | None = None, until: Mapping[int, int]
    ) -> AsyncGenerator[list[Record], None]:
        wanted = [record for record in self.records if record.offset < until[record.partition]]
        for at in range(0, len(wanted), 2):
            yield wanted[at : at + 2]


@dataclass
class Index:
    """One index: what is there stays."""

    documents: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    at_read: Exception | None = None

    async def count(self, sites: Collection[str] | None) -> int:
        return len(self.documents)

    async def read(self, sites: Collection[str] | None) -> AsyncGenerator[Sequence[BackupDocument], None]:
        for id, source in self.documents.items():
            if self.at_read:
                raise self.at_read
            if sites is None or source["site"] in sites:
                yield [BackupDocument(id, source)]

    async def put_back(self, documents: Sequence[BackupDocument]) -> PutBack:
        new = {one.id: one.source for one in documents if one.id not in self.documents}
        self.documents |= new
        return PutBack(len(new), len(documents) - len(new))


@dataclass
class Town:
    """A system: a log, and its indexes."""

    log: list[Record] = field(default_factory=list)
    indexes: dict[PartName, Index] = field(default_factory=lambda: {name: Index() for name in NAMES})
    told: list[ReceiptEvent] = field(default_factory=list)
    unlogged_: list[int] = field(default_factory=list)  # what the broker says of it, look by look; then nothing

    def save(self, *changes: PageChange, partition: int = 0, headers: Headers = ()) -> None:
        for change in changes:
            self.put(change.page_key.encode(), change.encode(), headers, partition)

    def put(self, key: bytes | None, value: bytes | None, headers: Headers, partition: int) -> None:
        offset = sum(record.partition == partition for record in self.log)
        self.log.append(Record("cms.changes", partition, offset, key, value, headers, 1_000 + offset))

    async def send(self, topic: Topic, key: str, message: ReceiptEvent, *, lane: Lane) -> None:
        assert (topic, key, lane) == (RECEIPTS, message.change.page_key, "bulk")
        self.told.append(message)

    async def send_bytes(self, topic: Topic, key: bytes | None, value: bytes | None, headers: Headers) -> None:
        self.put(key, value, headers, 0)

    @asynccontextmanager
    async def open_log(self) -> AsyncIterator[Scan]:
        yield Scan(list(self.log))

    async def unlogged(self) -> int:
        return self.unlogged_.pop(0) if self.unlogged_ else 0

    async def back_up(self, path: Path, **more: Any) -> Manifest:
        stock = Stock(self.open_log, self.indexes, self.unlogged)
        return await back_up(path, stock, About("1.2.3", token_mark="mark"), lambda: NOON, **more)

    async def restore(self, path: Path, sites: Collection[str] = ("town",), **more: Any) -> dict[PartName, Restored]:
        target = Target(self.open_log, self.indexes, self)  # type: ignore[arg-type]
        return await restore(BackupFolder(path), target, sites, **more)

    @property
    def newest(self) -> dict[str, tuple[int, str]]:
        """The state of each page, as the log has it."""
        found: dict[str, tuple[int, str]] = {}
        for change in map(change_of, self.log):
            if change is not None:
                state = change.revision, change.op
                found[change.page_key] = max(
                    found.get(change.page_key, state), state, key=lambda s: (s[0], s[1] == "delete")
                )
        return found
