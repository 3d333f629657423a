"""Index diff: the change log and an index side by side in a temporary SQLite database.

    cms.changes ─▶ log ─────────────┐ one row per page: the winner, its offset, the last offset of the page
                                    ├─▶ judge ─▶ finding
    index ─▶ head, promised, chunk ─┘            a page without one is closed, the others are read again

The database is an unnamed file that ends with the process, so a million chunks cost disk, not memory (some 50 bytes
each). It calls no server; `audit` fills it. Not for use by two threads at once.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple

from pipelines.operate.audit import index_diff_sql as sql
from pipelines.runtime.record import Record
from schemas.base import WireError
from schemas.keys import chunk_id, head_id
from schemas.page import PageChange

Kind = Literal["missing", "extra", "stale", "ahead", "mixed", "orphan", "fingerprint", "log"]
Cause = Literal[
    "absent", "unguarded", "hidden", "short", "undeleted", "unlogged", "older", "newer", "undone", "newer-chunks",
    "mixed", "orphan", "model", "chunker", "buried",
]  # fmt: skip


class Nature(NamedTuple):
    """The consequences of a cause."""

    kind: Kind
    behind: bool = False  # the index may still catch up with the log, unless the change is a dead letter
    resend: bool = False  # repaired by sending the log's change (`undone`: the index's delete) again
    doubtful: bool = False  # only the log can be wrong: repaired with `force` only


NATURES: Final[Mapping[Cause, Nature]] = {
    "absent": Nature("missing", behind=True, resend=True),
    "unguarded": Nature("missing", behind=True, resend=True),
    "hidden": Nature("missing", behind=True, resend=True),
    "short": Nature("missing", resend=True),
    "undeleted": Nature("extra", behind=True, resend=True),
    "unlogged": Nature("extra", doubtful=True),
    "older": Nature("stale", behind=True, resend=True),
    "newer": Nature("ahead", doubtful=True),
    "undone": Nature("ahead", resend=True),
    "newer-chunks": Nature("ahead", doubtful=True),
    "mixed": Nature("mixed", resend=True),
    "orphan": Nature("orphan"),
    "model": Nature("fingerprint", resend=True),
    "chunker": Nature("fingerprint", resend=True),
    "buried": Nature("log", resend=True),
}


class HeadDocument(NamedTuple):
    """A head record in an index."""

    id: str
    version: int
    page_key: str
    revision: int
    deleted: bool
    promised: Mapping[str, int]  # chunks per field
    model: str
    chunker: str


class ChunkDocument(NamedTuple):
    """A chunk, or any other document that is no head record, in an index."""

    id: str
    version: int
    page_key: str  # its id, when it names no page
    revision: int
    field: str
    ord: int
    model: str
    chunker: str


class IndexDifference(NamedTuple):
    """One difference at one page."""

    page_key: str
    kind: Kind
    cause: Cause
    expected: int | None  # revision, by the log
    held: int | None  # revision, in the index
    amount: int  # chunks; 0 where the page as a whole is meant
    example: str  # one of those chunks


class Winner(NamedTuple):
    """The winning change of a page, and its place in the log."""

    page_key: str
    partition: int
    offset: int
    revision: int
    beaten: int | None  # highest revision in the index, if it is newer than the change
    deleted: int | None = None  # revision of a delete that only the index knows


class WrongDocument(NamedTuple):
    """A document to delete, unless it was written again since."""

    id: str
    version: int


class IndexDiff:
    """One comparison of a site's log with one index. Close it."""

    def __init__(self, site: str, model: str | None, chunker: str | None) -> None:
        """`model`, `chunker`: fingerprints of the index; None when there is none."""
        self._prefix = f"{site}:".encode()
        self._model = model
        self._chunker = chunker
        self.unreadable = 0  # changes of the site that are none: dead letters
        # Without a name: a file that is gone with the connection, however the process ends.
        self._db = sqlite3.connect("", check_same_thread=False)
        self._db.executescript(sql.SCHEMA)
        with self._db:
            self._db.executemany(sql.ADD_CAUSE, [(cause, *nature) for cause, nature in NATURES.items()])

    def close(self) -> None:
        self._db.close()

    # The log

    def add_records(self, records: Iterable[Record]) -> None:
        """Add records of `cms.changes`, in offset order per partition. Other sites' records are skipped."""
        changes: list[tuple[str, int, bool, int, int]] = []
        tops: list[tuple[int, str, int, int]] = []
        for record in records:
            if record.key is None or not record.key.startswith(self._prefix):
                continue
            key = record.key.decode(errors="replace")
            tops.append((record.offset, key, record.partition, record.offset))
            try:
                change = PageChange.decode(record.value)
                if change.page_key != key:
                    raise WireError("another page than its key says")
            except WireError:
                self.unreadable += 1
                continue
            changes.append((key, change.revision, change.op == "delete", record.partition, record.offset))
        with self._db:
            self._db.executemany(sql.ADD_CHANGE, changes)
            self._db.executemany(sql.ADD_PLACE, [(*change, change[-1]) for change in changes])
            self._db.executemany(sql.RAISE_TOP, tops)

    def log_is_read(self) -> None:
        """Later records came after the audit began: the index need not show them yet."""
        self._run(sql.LOG_IS_READ)

    # The index

    def add_documents(self, heads: Iterable[HeadDocument], chunks: Iterable[ChunkDocument]) -> None:
        """Add documents of the index."""
        in_place: list[HeadDocument] = []
        rows: list[tuple[str, str, int, str, int, int, int]] = []
        for head in heads:
            if head.id == head_id(head.page_key):
                in_place.append(head)
            else:
                rows.append((head.page_key, "", -1, head.id, head.revision, 0, head.version))
        for chunk in chunks:
            key, field, ord = chunk.page_key, chunk.field, chunk.ord
            stray = "" if chunk.id == chunk_id(key, field, ord) and ord >= 0 else chunk.id
            rows.append((key, field, ord, stray, chunk.revision, self._misfit(chunk), chunk.version))
        with self._db:
            self._db.executemany(sql.ADD_CHUNK, rows)
            self._db.executemany(
                sql.ADD_PROMISED, [(head.page_key, field, n) for head in in_place for field, n in head.promised.items()]
            )
            self._db.executemany(
                sql.ADD_HEAD, [(h.page_key, h.revision, h.deleted, self._misfit(h), h.version) for h in in_place]
            )

    def forget_documents(self, page_keys: Iterable[str]) -> None:
        """Drop these pages' documents: they are read again."""
        keys = [(key,) for key in page_keys]
        with self._db:
            for statement in sql.FORGET:
                self._db.executemany(statement, keys)

    def index_is_read(self) -> None:
        """Both sides are complete: every page is open."""
        self._run(sql.OPEN_ALL)

    # Differences

    def judge(self) -> None:
        """Find the differences of the open pages."""
        self._run(*sql.JUDGE)

    def behind(self, after: str, limit: int) -> list[tuple[str, int]]:
        """Pages that the index does not show yet, in the order of their keys, with the expected revision."""
        return self._db.execute(sql.BEHIND, (after, limit)).fetchall()

    def mark_failed(self, page_keys: Iterable[str]) -> None:
        """Mark changes that ended as dead letters: their absence from the index is no drift."""
        with self._db:
            self._db.executemany(sql.MARK_FAILED, [(key,) for key in page_keys])

    def close_agreeing(self) -> int:
        """Close the pages without differences; returns how many stay open."""
        self._run(sql.CLOSE_AGREEING)
        return self._number(sql.COUNT_OPEN)

    def curable(self) -> int:
        """How many pages the pipeline repairs by processing the log."""
        return self._number(sql.COUNT_CURABLE)

    def open_pages(self, after: str, limit: int) -> list[str]:
        """Keys of open pages, in order."""
        return [key for (key,) in self._db.execute(sql.OPEN_PAGES, (after, limit))]

    # Reports

    def counts(self) -> dict[Kind, int]:
        """Pages by kind of finding; a page may have several."""
        return dict(self._db.execute(sql.KINDS))

    def findings(self, limit: int) -> list[IndexDifference]:
        """The first findings, in the order of the pages' keys."""
        return [IndexDifference(*row) for row in self._db.execute(sql.FINDINGS, (limit,))]

    def failed(self) -> int:
        """How many pages' change is a dead letter."""
        return self._number(sql.COUNT_FAILED)

    def pages(self) -> tuple[int, int]:
        """Pages in the log or in the index, and how many of them are deleted; the log decides if it knows the page."""
        pages, deleted = next(self._db.execute(sql.COUNT_PAGES))
        return pages, round(deleted)

    def chunks(self) -> int:
        """How many chunks the index has."""
        return self._number(sql.COUNT_CHUNKS)

    # Repairs

    def would_vanish(self) -> tuple[int, int]:
        """How many shown pages the log does not show, and how many pages are shown."""
        return self._number(sql.WOULD_VANISH), self._number(sql.SHOWN)

    def to_send(self, after: tuple[int, int], limit: int, *, force: bool) -> list[Winner]:
        """Changes to send again, in the log's order; `after` a partition and offset.

        With `force` also changes of pages that are newer in the index than in the log, with the revision that the
        change must beat. A page that only the index knows as deleted is always included, with the revision of that
        delete.
        """
        return [Winner(*row) for row in self._db.execute(sql.TO_SEND, (force, force, *after, force, limit))]

    def to_clear(self, after: str, limit: int, *, force: bool) -> list[tuple[str, list[WrongDocument]]]:
        """Documents to delete, by page: orphans; with `force` also pages that the log does not know.

        A page whose change is sent again keeps its chunks until the next round: they answer questions meanwhile.
        """
        keys = self._db.execute(sql.TO_CLEAR, (after, force, limit)).fetchall()
        return [(key, self._strays(key)) for (key,) in keys]

    def _strays(self, key: str) -> list[WrongDocument]:
        chunks = self._db.execute(sql.STRAYS, (key,))
        found = [WrongDocument(id or chunk_id(key, field, ord), version) for id, field, ord, version in chunks]
        # The head last: after a crash in between, the next audit finds the page again.
        heads = self._db.execute(sql.UNLOGGED_HEAD, (key,))
        return found + [WrongDocument(head_id(key), version) for (version,) in heads]

    def _misfit(self, document: HeadDocument | ChunkDocument) -> int:
        """1: another model, 2: another chunker."""
        return int(document.model != self._model) | int(document.chunker != self._chunker) << 1

    def _run(self, *statements: str) -> None:
        with self._db:
            for statement in statements:
                self._db.execute(statement)

    def _number(self, question: str) -> int:
        (number,) = self._db.execute(question).fetchone()
        return int(number)
