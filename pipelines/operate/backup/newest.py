"""Finds the newest record of each page in `cms.changes`, with a temporary SQLite database.

The log is read twice: the first pass adds every record, the second one picks the newest. So memory stays flat whatever
the number of pages; the database takes some 100 bytes of disk for each.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from pipelines.runtime.record import Record
from schemas.base import WireError
from schemas.page import PageChange

_SCHEMA = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE newest (
    page_key TEXT PRIMARY KEY, revision INTEGER, deleted INTEGER, partition INTEGER, offset INTEGER
) WITHOUT ROWID;
"""
# As pipelines.ingest.accept.newer orders changes; of equal ones the last was applied last.
_ADD = """
INSERT INTO newest VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
    revision = excluded.revision, deleted = excluded.deleted, partition = excluded.partition, offset = excluded.offset
WHERE (excluded.revision, excluded.deleted) >= (newest.revision, newest.deleted)
"""
_COUNTS = "SELECT 1 FROM newest WHERE page_key = ? AND partition = ? AND offset = ?"
_KNOWN = "SELECT 1 FROM newest WHERE page_key = ? AND (revision, deleted) >= (?, ?)"


def change_of(record: Record) -> PageChange | None:
    """The change in a record; None: it has none, and is a dead letter of the chunk stage."""
    try:
        change = PageChange.decode(record.value)
    except WireError:
        return None
    return change if record.key == change.page_key.encode() else None


class Newest:
    """One read of the log. Close it. Not for use by two threads at once."""

    def __init__(self, sites: Collection[str] | None, folder: Path | None = None) -> None:
        """
        Args:
            sites: only these; None: all.
            folder: for the database; default: SQLite's own choice.
        """
        self._sites = None if sites is None else frozenset(sites)
        self.unreadable = 0
        # A file without a name: it is gone with the connection, however the process ends.
        file = "" if folder is None else str(folder / "newest.sqlite")
        self._db = sqlite3.connect(file, check_same_thread=False)
        self._db.executescript(_SCHEMA)
        if file:
            Path(file).unlink()

    def close(self) -> None:
        self._db.close()

    def add(self, records: Iterable[Record]) -> None:
        """Add records of the log, in offset order per partition."""
        rows = []
        for record in records:
            change = change_of(record)
            if change is None:
                self.unreadable += 1
            elif self._sites is None or change.site in self._sites:
                place = (record.partition, record.offset)
                rows.append((change.page_key, change.revision, change.op == "delete", *place))
        with self._db:
            self._db.executemany(_ADD, rows)

    def pages(self) -> int:
        """How many pages the log knows, deleted ones too."""
        return int(self._db.execute("SELECT count(*) FROM newest").fetchone()[0])

    def counting(self, records: Iterable[Record]) -> list[Record]:
        """Those of the records that are the newest of their page."""
        return [record for record in records if record.key is not None and self._counts(record.key, record)]

    def _counts(self, key: bytes, record: Record) -> bool:
        place = (key.decode(errors="replace"), record.partition, record.offset)
        return self._db.execute(_COUNTS, place).fetchone() is not None

    def unknown(self, changes: Sequence[PageChange]) -> list[bool]:
        """Of each change whether the log has neither it nor a newer one of its page."""
        rows = ((one.page_key, one.revision, one.op == "delete") for one in changes)
        return [self._db.execute(_KNOWN, row).fetchone() is None for row in rows]
