"""Index diff: what the change log says and what an index holds, side by side in a temporary SQLite database.

    cms.changes ─▶ log ─────────────┐ one row per page: the winner, where it stands, what stands on top
                                    ├─▶ judge ─▶ finding
    index ─▶ head, promised, chunk ─┘            a page without one is closed, the others are looked at again

The database lives in an unnamed file that goes with this process, so a million chunks cost disk, not memory (some 50
bytes each). Nothing here asks a server; `audit` feeds it. Not for use by two threads at once.
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
    """What follows from a cause."""

    kind: Kind
    behind: bool = False  # the index has not got so far as the log; a change that became a dead letter never will
    resend: bool = False  # the log's own change (`undone`: the index's delete), sent once more, puts it right
    doubtful: bool = False  # only the log can be wrong here: a repair has to be asked for by force


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
    """A head record as it stands in an index."""

    id: str
    version: int
    page_key: str
    revision: int
    deleted: bool
    promised: Mapping[str, int]  # chunks per field
    model: str
    chunker: str


class ChunkDocument(NamedTuple):
    """A chunk, or any other document that is no head record, as it stands in an index."""

    id: str
    version: int
    page_key: str  # its id, when it names no page
    revision: int
    field: str
    ord: int
    model: str
    chunker: str


class Difference(NamedTuple):
    """One thing that is not as it should be, at one page."""

    page_key: str
    kind: Kind
    cause: Cause
    expected: int | None  # revision, by the log
    held: int | None  # revision, in the index
    amount: int  # chunks; 0 where the page as a whole is meant
    example: str  # one of those chunks


class Winner(NamedTuple):
    """The change that counts for a page, and where it stands in the log."""

    page_key: str
    partition: int
    offset: int
    revision: int
    beaten: int | None  # highest revision in the index, where that is newer than the change
    deleted: int | None = None  # by which revision the index has it deleted, of which the log knows nothing


class Document(NamedTuple):
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
        # Without a name: a file of its own that is gone with the connection, however the process ends.
        self._db = sqlite3.connect("", check_same_thread=False)
        self._db.executescript(sql.SCHEMA)
        with self._db:
            self._db.executemany(sql.ADD_CAUSE, [(cause, *nature) for cause, nature in NATURES.items()])

    def close(self) -> None:
        self._db.close()

    # What the log says

    def add_records(self, records: Iterable[Record]) -> None:
        """Take in a stretch of `cms.changes`, in offset order per partition. Other sites' records are passed over."""
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
        """What is added from here on came after the audit began: the index need not show it yet."""
        self._run(sql.LOG_IS_READ)

    # What the index holds

    def add_documents(self, heads: Iterable[HeadDocument], chunks: Iterable[ChunkDocument]) -> None:
        """Take in documents of the index."""
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
        """Forget what the index held of these pages: they are read again."""
        keys = [(key,) for key in page_keys]
        with self._db:
            for statement in sql.FORGET:
                self._db.executemany(statement, keys)

    def index_is_read(self) -> None:
        """Both sides are there: every page is open."""
        self._run(sql.OPEN_ALL)

    # What does not fit

    def judge(self) -> None:
        """Find what is wrong with the open pages, from what is known of them now."""
        self._run(*sql.JUDGE)

    def behind(self, after: str, limit: int) -> list[tuple[str, int]]:
        """Pages, in the order of their keys, and the revisions that the index does not show yet."""
        return self._db.execute(sql.BEHIND, (after, limit)).fetchall()

    def mark_failed(self, page_keys: Iterable[str]) -> None:
        """These changes ended as dead letters: that the index does not show them is no drift."""
        with self._db:
            self._db.executemany(sql.MARK_FAILED, [(key,) for key in page_keys])

    def close_agreeing(self) -> int:
        """Close the pages that nothing is wrong with, for good; returns how many stay open."""
        self._run(sql.CLOSE_AGREEING)
        return self._number(sql.COUNT_OPEN)

    def curable(self) -> int:
        """Pages that the pipeline puts right when it comes to what the log has."""
        return self._number(sql.COUNT_CURABLE)

    def open_pages(self, after: str, limit: int) -> list[str]:
        """Keys in order."""
        return [key for (key,) in self._db.execute(sql.OPEN_PAGES, (after, limit))]

    # What to tell

    def counts(self) -> dict[Kind, int]:
        """Pages by kind of finding; a page may have several."""
        return dict(self._db.execute(sql.KINDS))

    def findings(self, limit: int) -> list[Difference]:
        """The first ones, in the order of the pages' keys."""
        return [Difference(*row) for row in self._db.execute(sql.FINDINGS, (limit,))]

    def failed(self) -> int:
        """Pages whose change is a dead letter."""
        return self._number(sql.COUNT_FAILED)

    def pages(self) -> tuple[int, int]:
        """Pages in the log or in the index, and how many of them are deleted, by the log where it knows them."""
        pages, deleted = next(self._db.execute(sql.COUNT_PAGES))
        return pages, round(deleted)

    def chunks(self) -> int:
        """Chunks in the index."""
        return self._number(sql.COUNT_CHUNKS)

    # What to do

    def would_vanish(self) -> tuple[int, int]:
        """Pages that are shown and, by the log, should not be; and all that are shown."""
        return self._number(sql.WOULD_VANISH), self._number(sql.SHOWN)

    def to_send(self, after: tuple[int, int], limit: int, *, force: bool) -> list[Winner]:
        """Changes to send again, in the log's order; `after` a partition and offset.

        A page of which the index has anything newer than the log is among them with `force` only, and with the
        revision its change must beat: sent as it is, it would lose. One that only the index knows to be deleted is
        among them without it, with the revision of that delete.
        """
        return [Winner(*row) for row in self._db.execute(sql.TO_SEND, (force, force, *after, force, limit))]

    def to_clear(self, after: str, limit: int, *, force: bool) -> list[tuple[str, list[Document]]]:
        """Documents to delete, by page: what belongs to nothing; with `force` also what the log does not know.

        A page whose change is sent again keeps its chunks until the next round: they answer questions meanwhile.
        """
        keys = self._db.execute(sql.TO_CLEAR, (after, force, limit)).fetchall()
        return [(key, self._strays(key)) for (key,) in keys]

    def _strays(self, key: str) -> list[Document]:
        chunks = self._db.execute(sql.STRAYS, (key,))
        found = [Document(id or chunk_id(key, field, ord), version) for id, field, ord, version in chunks]
        # The head goes last: dying in between leaves a page that is found again.
        heads = self._db.execute(sql.UNLOGGED_HEAD, (key,))
        return found + [Document(head_id(key), version) for (version,) in heads]

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
