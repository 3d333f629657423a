"""Import: many pages through the same door as a single save, in the lane that saves overtake; resumable, with progress.

For pages that are at hand, such as those of a file; what a connector lists is brought in by connectors/cms/sync.py.
A cursor file remembers how many pages of a source the broker has confirmed; an interrupted import goes on there. What
is sent twice all the same is the same revision and changes nothing.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from time import monotonic

from more_itertools import chunked

from pipelines.ingest.accept import Acceptance, Change, Intake
from pipelines.ingest.receipts import ReceiptReader
from pipelines.runtime.errors import Kind, Permanent
from pipelines.runtime.folder import Folder
from pipelines.runtime.record import Lane
from schemas.ingest import Receipt
from schemas.page import PageDocument

FOLDER = "imports"  # of cursors, in settings.home
BATCH = 100  # pages put into the log together, ...
BATCH_BYTES = 8 * 1024 * 1024  # ... unless they are heavy before that
POLL = 0.5  # seconds between looks at the receipts
LOOK = 500  # receipts read at once
SILENCE = 30.0  # seconds without news after which all receipts are looked at


@dataclass
class ImportProgress:
    """Where an import stands."""

    sent: int = 0
    superseded: int = 0
    searchable: int = 0
    failed: int = 0


class Cursor:
    """Remembers how far a source was imported into a site."""

    def __init__(self, home: Path, site: str, source: Path) -> None:
        # Another content of the same file, or of any in the same folder, begins at the start again.
        folder = Folder(source)
        name = blake2b(site.encode(), digest_size=12)
        files = ((one.path, one.stat) for one in folder.walk()) if folder.path.is_dir() else ()
        for path, stat in ((folder.path, folder.path.stat()), *files):
            name.update(os.fsencode(path) + (f"|{stat.st_size}|{stat.st_mtime_ns}" if stat else "").encode() + b"\n")
        self._file = home / FOLDER / f"{name.hexdigest()}.json"

    def read(self) -> int:
        try:
            return int(json.loads(self._file.read_text())["accepted"])
        except (OSError, ValueError, TypeError, KeyError):
            return 0

    def write(self, accepted: int) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._file.with_suffix(".tmp")
        temporary.write_text(json.dumps({"accepted": accepted}))
        temporary.replace(self._file)

    def forget(self) -> None:
        self._file.unlink(missing_ok=True)


def forget_all(home: Path) -> None:
    """Make every import begin at its start, since the log that has what was sent is gone."""
    shutil.rmtree(home / FOLDER, ignore_errors=True)


def _batches(pages: Iterable[PageDocument]) -> Iterator[list[PageDocument]]:
    # Not more_itertools.constrained_batches: it keeps a full batch back until one page more has been read.
    batch: list[PageDocument] = []
    heavy = 0
    for page in pages:
        batch.append(page)
        heavy += weight(page)
        if len(batch) == BATCH or heavy >= BATCH_BYTES:
            yield batch
            batch, heavy = [], 0
    if batch:
        yield batch


def weight(page: PageDocument) -> int:
    """Roughly its bytes: of what can be large."""
    return len(page.content) + sum(len(attached.data_base64 or "") for attached in page.attachments)


async def send(
    site: str,
    pages: Iterable[PageDocument],
    intake: Intake,
    cursor: Cursor | None,
    report: Callable[[ImportProgress], None],
    failed: dict[str, str],
) -> dict[str, int]:
    """Put the pages into the log.

    Args:
        failed: gets the ids of pages that the intake refuses, and why; the others go on.

    Returns:
        The revision by page key of what was sent.
    """
    progress = ImportProgress()
    skip = cursor.read() if cursor else 0
    progress.sent = skip
    revisions: dict[str, int] = {}

    def refused(page: PageDocument, why: str) -> None:
        failed[page.id] = why

    for batch in _batches(islice(pages, skip, None)):
        for one in await accept_each(intake, site, batch, "import", "bulk", refused):
            if one.superseded:
                progress.superseded += 1
            else:
                revisions[one.page_key] = one.revision
        progress.sent += len(batch)
        if cursor:
            cursor.write(progress.sent)
        report(progress)
    if cursor:
        cursor.forget()
    return revisions


async def accept_each(
    intake: Intake,
    site: str,
    pages: Sequence[PageDocument],
    source: str,
    lane: Lane,
    refused: Callable[[PageDocument, str], None],
) -> list[Acceptance]:
    """Put the pages into the log; one that the intake refuses stops no other.

    Raises:
        Retryable: the broker does not take them. Permanent: for a reason that no page has given.
    """
    try:
        return await intake.accept(site, [Change("upsert", page) for page in pages], source, lane)
    except Permanent as err:
        if err.kind is not Kind.RECORD:
            raise
        if len(pages) == 1:
            refused(pages[0], str(err))
            return []
        # One of them was refused for all.
        return [one for page in pages for one in await accept_each(intake, site, [page], source, lane, refused)]


async def settle(
    site: str, revisions: Mapping[str, int], receipts: ReceiptReader, settled: set[str]
) -> AsyncIterator[tuple[ImportProgress, dict[str, Receipt]]]:
    """Wait until every page is searchable or has failed; yields after every look, with the receipts so far of those
    that failed, and of those that are searchable without all that belongs to them.

    Args:
        settled: gets the keys of pages whose change was settled, from outside, since before they were sent. Only these
            are looked at: reading all that wait, again and again, takes Elasticsearch longer than an import.
    """
    waiting = dict(revisions)
    progress = ImportProgress(sent=len(revisions))
    told: dict[str, Receipt] = {}
    since = monotonic()
    while waiting:
        news = [key for key in waiting if key in settled]
        settled.clear()
        if not news and monotonic() - since > SILENCE:
            news = list(waiting)
        for keys in chunked(news, LOOK):
            for key, receipt in (await receipts.receipts(site, keys)).items():
                if receipt.accepted_revision < waiting[key] or receipt.state == "queued":
                    continue
                del waiting[key]
                if receipt.state == "failed":
                    progress.failed += 1
                    told[key] = receipt
                else:
                    progress.searchable += 1
                    if receipt.notes:
                        told[key] = receipt
        if news:
            since = monotonic()
        yield progress, told
        if waiting:
            await asyncio.sleep(POLL)
