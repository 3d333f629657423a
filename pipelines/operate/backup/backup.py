"""Writes a backup: streams each part into its file; the manifest and the folder's final name come last."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, ExitStack, aclosing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from time import monotonic

from pipelines.operate.backup.folder import BackupStopped, NewFolder
from pipelines.operate.backup.manifest import (
    CHANGES,
    BackupFile,
    BackupIndex,
    BackupProgress,
    IndexFacts,
    Manifest,
    PartName,
    document_line,
    record_line,
)
from pipelines.operate.backup.newest import Newest
from pipelines.operate.off_loop import OffLoop, off_loop
from pipelines.runtime.bus import LogScan
from pipelines.runtime.errors import Retryable
from pipelines.runtime.record import Record
from schemas.keys import parse_page_key

PATIENCE = 10.0  # seconds to wait until the question log has all outcomes on their way
POLL = 0.2  # seconds

# Conversations before questions: if a visitor deletes a conversation in between, the question log in the backup knows
# it, and a restore leaves it deleted.
ORDER: tuple[PartName, ...] = ("conversations", "questions", "examples", "texts", "switches")

Report = Callable[[BackupProgress], None]
OpenLog = Callable[[], AbstractAsyncContextManager[LogScan]]


class LogChanged(Retryable):
    """The change log was compacted while it was read."""

    code = "log-changed"


@dataclass(frozen=True)
class Stock:
    """The sources of a backup."""

    open_log: OpenLog
    documents: Mapping[PartName, BackupIndex]
    unlogged: Callable[[], Awaitable[int]]  # outcomes of questions that the log stage has not stored yet


@dataclass(frozen=True)
class About:
    """The facts about the installation in a manifest."""

    pagewire: str
    indexes: Mapping[str, IndexFacts] = field(default_factory=dict)
    token_mark: str | None = None


async def back_up(
    path: Path,
    stock: Stock,
    about: About,
    now: Callable[[], datetime],
    *,
    sites: Collection[str] | None = None,
    report: Report = lambda _: None,
) -> Manifest:
    """Write a backup into a new folder.

    Args:
        sites: only these; None: all.

    Raises:
        WrongUse: `path` exists. BackupStopped: it cannot be written.
        LogChanged, Retryable: a service does not answer. An unfinished backup is deleted.
    """
    with ExitStack() as stack:
        folder = stack.enter_context(NewFolder(path))
        async with off_loop(BackupStopped) as aside:
            began_at = now()
            parts = [await _changes(folder, stock.open_log, sites, aside, report)]
            left = await _logged(stock.unlogged)
            parts += [await _documents(folder, name, stock.documents[name], sites, aside, report) for name in ORDER]
            manifest = Manifest(
                pagewire=about.pagewire,
                began_at=began_at,
                ended_at=now(),
                parts=tuple(parts),
                indexes={name: facts for name, facts in about.indexes.items() if sites is None or name in sites},
                token_mark=about.token_mark,
                notes=_notes(parts, left),
            )
            await aside.call(folder.finish, manifest)
    return manifest


async def _changes(
    folder: NewFolder, open_log: OpenLog, sites: Collection[str] | None, aside: OffLoop, report: Report
) -> BackupFile:
    with ExitStack() as stack:
        newest = await aside.call(Newest, sites, folder.draft)
        stack.callback(aside.later, newest.close)
        file = await aside.call(folder.part, CHANGES)
        stack.callback(aside.later, file.release)
        async with open_log() as log:
            begins, ends = await log.begins(), await log.ends()
            await _scan(log, begins, ends, "reading changes", report, lambda some: aside.call(newest.add, some))

            def write(records: list[Record]) -> None:
                file.write([(_site(record), record_line(record)) for record in newest.counting(records)])

            await _scan(log, begins, ends, CHANGES, report, lambda some: aside.call(write, some))
        await aside.call(file.close)
        part, pages = file.part(), await aside.call(newest.pages)
        if part.records != pages:
            raise LogChanged(
                f"{pages - part.records:,} changes were compacted away while the log was read: run the backup again"
            )
        return part.model_copy(update={"until": dict(ends), "unreadable": newest.unreadable})


async def _scan(
    log: LogScan,
    begins: Mapping[int, int],
    ends: Mapping[int, int],
    step: str,
    report: Report,
    take: Callable[[list[Record]], Awaitable[None]],
) -> None:
    first, total = sum(begins.values()), sum(ends.values()) - sum(begins.values())
    at = dict(begins)
    async with aclosing(log.read(since=begins, until=ends)) as batches:
        async for batch in batches:
            await take(batch)
            at.update((record.partition, record.offset + 1) for record in batch)
            report(BackupProgress(step, sum(at.values()) - first, total))
    report(BackupProgress(step, total, total))


async def _documents(
    folder: NewFolder,
    name: PartName,
    documents: BackupIndex,
    sites: Collection[str] | None,
    aside: OffLoop,
    report: Report,
) -> BackupFile:
    total, done = await documents.count(sites), 0
    with ExitStack() as stack:
        file = await aside.call(folder.part, name)
        stack.callback(aside.later, file.release)
        async with aclosing(documents.read(sites)) as batches:
            async for batch in batches:
                await aside.call(file.write, [(one.site, document_line(one)) for one in batch])
                done += len(batch)
                report(BackupProgress(name, done, max(done, total)))
        report(BackupProgress(name, done, done))
        await aside.call(file.close)
        return file.part()


async def _logged(unlogged: Callable[[], Awaitable[int]]) -> int:
    """Wait until the question log has all outcomes on their way; returns how many are missing after PATIENCE."""
    end = monotonic() + PATIENCE
    while (left := await unlogged()) and monotonic() < end:  # noqa: ASYNC110  # there is no event for it
        await asyncio.sleep(POLL)
    return left


def _notes(parts: list[BackupFile], unlogged: int) -> tuple[str, ...]:
    notes = []
    if unreadable := sum(part.unreadable for part in parts):
        notes.append(f"{unreadable:,} records of the change log are no changes (dead letters): left out")
    if unlogged:
        notes.append(
            f"up to {unlogged:,} outcomes of questions had not come into the question log: left out; does "
            "`pagewire worker log` run?"
        )
    return tuple(notes)


def _site(record: Record) -> str:
    return parse_page_key((record.key or b"").decode()).site
