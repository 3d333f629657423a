"""Restores a backup: checks every file, then sends the data by the normal ways into the system.

Changes go to the log in the bulk lane, with their revisions, unless the log has them or newer ones; the stages do the
rest. Documents are written unless newer ones exist. The switches come first, so that a chat that was switched off does
not answer from the restored pages. The question log comes before the conversations, because it knows which of them
their visitors have deleted since.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack, aclosing
from dataclasses import dataclass
from typing import TypeVar

from pydantic import Field

from pipelines.ingest.accept import queued
from pipelines.operate.backup.backup import OpenLog, Report
from pipelines.operate.backup.folder import BackupDamaged, BackupFolder, BackupStopped
from pipelines.operate.backup.manifest import (
    CHANGES,
    BackupFile,
    BackupIndex,
    BackupProgress,
    PartName,
    document_of,
    record_of,
)
from pipelines.operate.backup.newest import Newest, change_of
from pipelines.operate.off_loop import OffLoop, off_loop
from pipelines.runtime.bus import Producer
from pipelines.runtime.errors import WrongUse
from pipelines.runtime.record import Record, in_lane
from schemas.base import Wire
from schemas.page import PageChange
from schemas.topics import CHANGES as TOPIC
from schemas.topics import RECEIPTS

T = TypeVar("T")

ORDER: tuple[PartName, ...] = ("switches", "texts", "examples", "questions", "conversations")
BATCH = 200  # records
BATCH_BYTES = 16 * 1024 * 1024  # of lines, after which a batch ends


class OtherSites(WrongUse):
    """The backup holds sites that are not configured here."""

    code = "other-sites"


class Restored(Wire):
    """The outcome of one part."""

    restored: int = 0
    there: int = Field(default=0, description="The same was there, or a newer one.")
    forgotten: int = Field(default=0, description="Conversations that their visitors have deleted since: left out.")

    def plus(self, restored: int, there: int, forgotten: int = 0) -> Restored:
        return Restored(
            restored=self.restored + restored, there=self.there + there, forgotten=self.forgotten + forgotten
        )


@dataclass(frozen=True)
class Target:
    """The targets of a restore."""

    open_log: OpenLog
    documents: Mapping[PartName, BackupIndex]
    sender: Producer


def wanted(folder: BackupFolder, configured: Collection[str], sites: Collection[str]) -> frozenset[str]:
    """Which sites to restore.

    Args:
        sites: the requested ones; empty: all of the backup.

    Raises: OtherSites: a site is not in the backup, or not configured here.
    """
    held = folder.manifest.sites
    if strangers := sorted(set(sites) - held):
        raise OtherSites(f"the backup has nothing of site {strangers[0]}; it has {_names(held)}")
    asked = frozenset(sites) or held
    if strangers := sorted(asked - set(configured)):
        raise OtherSites(
            f"the backup has site {', '.join(strangers)}, which pagewire.yaml does not name: add it there, or name "
            "with --site which ones to restore"
        )
    return asked


async def restore(
    folder: BackupFolder, target: Target, sites: Collection[str], report: Report = lambda _: None
) -> dict[PartName, Restored]:
    """Check the backup, and restore these sites. May be repeated.

    Raises: BackupDamaged: nothing was written. Retryable: a service does not answer; some may have been written.
    """
    async with off_loop(BackupStopped) as aside:
        await check(folder, aside, report)
        done: dict[PartName, Restored] = {}
        for name in ORDER:
            if (part := folder.manifest.part(name)) is not None:
                done[name] = await _documents(folder, part, target.documents[name], sites, aside, report)
        if (part := folder.manifest.part(CHANGES)) is not None:
            done[CHANGES] = await _changes(folder, part, target, sites, aside, report)
    return done


async def check(folder: BackupFolder, aside: OffLoop, report: Report) -> None:
    """Raises: BackupDamaged."""
    loop = asyncio.get_running_loop()

    def report_bytes(done: int, total: int) -> None:
        loop.call_soon_threadsafe(report, BackupProgress("checking", done, total))

    await aside.call(folder.check, report_bytes)


async def _documents(
    folder: BackupFolder,
    part: BackupFile,
    documents: BackupIndex,
    sites: Collection[str],
    aside: OffLoop,
    report: Report,
) -> Restored:
    restored, done = Restored(), 0
    report(BackupProgress(part.name, 0, part.records))
    async with aclosing(aside.batches(folder.lines(part), BATCH, len, BATCH_BYTES)) as batches:
        async for lines in batches:
            found = [one for one in await aside.call(_read, part, document_of, lines) if one.site in sites]
            if found:
                back = await documents.put_back(found)
                restored = restored.plus(back.restored, back.there, back.forgotten)
            done += len(lines)
            report(BackupProgress(part.name, done, part.records))
    return restored


async def _changes(
    folder: BackupFolder, part: BackupFile, target: Target, sites: Collection[str], aside: OffLoop, report: Report
) -> Restored:
    with ExitStack() as stack:
        known = await aside.call(Newest, sites)
        stack.callback(aside.later, known.close)
        async with target.open_log() as log, aclosing(log.read(until=await log.ends())) as there:
            async for batch in there:
                await aside.call(known.add, batch)

        def lacking(lines: list[bytes]) -> tuple[list[tuple[Record, PageChange]], int]:
            """The records that the log lacks, and how many belong to the sites."""
            records = _read(part, lambda line: record_of(line, TOPIC.name), lines)
            changes = [change_of(record) for record in records]
            ours = [(r, c) for r, c in zip(records, changes, strict=True) if c is not None and c.site in sites]
            unknown = known.unknown([change for _, change in ours])
            return [both for both, new in zip(ours, unknown, strict=True) if new], len(ours)

        restored, done = Restored(), 0
        report(BackupProgress(part.name, 0, part.records))
        async with aclosing(aside.batches(folder.lines(part), BATCH, len, BATCH_BYTES)) as batches:
            async for lines in batches:
                send, ours = await aside.call(lacking, lines)
                await asyncio.gather(*(_send(target.sender, record, change) for record, change in send))
                restored = restored.plus(len(send), ours - len(send))
                done += len(lines)
                report(BackupProgress(part.name, done, part.records))
        return restored


async def _send(sender: Producer, record: Record, change: PageChange) -> None:
    """Send a change with its receipt, as for any change: the receipt is `queued` until the page is searchable."""
    await sender.send_bytes(TOPIC, record.key, record.value, in_lane(record.headers, "bulk"))
    await sender.send(RECEIPTS, change.page_key, queued(change), lane="bulk")


def _read(part: BackupFile, read: Callable[[bytes], T], lines: list[bytes]) -> list[T]:
    """The parsed lines. Raises: BackupDamaged: the checksum fits, but other software wrote the line."""
    try:
        return [read(line) for line in lines]
    except ValueError as err:
        raise BackupDamaged(f"{part.file} has a line that cannot be read: {err}") from err


def _names(sites: Collection[str]) -> str:
    return ", ".join(sorted(sites)) or "nothing"
