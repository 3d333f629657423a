"""Compares the pages of a CMS with the known ones, in a SQLite database: 100,000 pages need disk, not memory.

    inventory ─▶ listed ─┐
                         ├─▶ wanted: missing, newer, revived     gone: known as this connector's, not listed
    log or journal ─▶ known ─┘

`sync` and `reconcile` fill it. Not thread-safe.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple

from connectors.cms.frame import Listed
from schemas.keys import page_key, parse_page_key

Why = Literal["missing", "newer", "revived"]

SCHEMA = """
PRAGMA synchronous = OFF;  -- a machine that crashes costs a second look, nothing else
CREATE TABLE IF NOT EXISTS listed (page_key TEXT PRIMARY KEY, revision INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS known (
    page_key TEXT PRIMARY KEY, revision INTEGER, deleted INTEGER, ours INTEGER
) WITHOUT ROWID;
"""
ADD_LISTED = """
INSERT INTO listed VALUES (?, ?)
ON CONFLICT DO UPDATE SET revision = max(listed.revision, excluded.revision)
"""
ADD_KNOWN = """
INSERT INTO known VALUES (?, ?, ?, ?)
ON CONFLICT DO UPDATE SET revision = excluded.revision, deleted = excluded.deleted, ours = excluded.ours
WHERE (excluded.revision, excluded.deleted) >= (known.revision, known.deleted)
"""
# `revived`: a page is public again after our delete; its modified time may be older than the delete.
DIFFERING = """
SELECT l.page_key, l.revision, CASE
    WHEN k.page_key IS NULL THEN 'missing'
    WHEN l.revision > k.revision THEN 'newer'
    ELSE 'revived'
END AS why
FROM listed l LEFT JOIN known k USING (page_key)
WHERE k.page_key IS NULL OR l.revision > k.revision OR (k.deleted AND k.ours AND k.revision < :before)
"""
WANTED = f"SELECT * FROM ({DIFFERING}) WHERE page_key > :after ORDER BY page_key LIMIT :limit"  # noqa: S608
COUNT_WANTED = f"SELECT why, count(*) FROM ({DIFFERING}) GROUP BY why"  # noqa: S608
MISSING = """
FROM known k WHERE ours AND NOT deleted AND revision < :before
AND NOT EXISTS (SELECT 1 FROM listed l WHERE l.page_key = k.page_key)
"""
GONE = f"SELECT page_key, revision {MISSING} AND page_key > :after ORDER BY page_key LIMIT :limit"
COUNT_GONE = f"SELECT count(*) {MISSING}"
COUNT_OURS = "SELECT count(*) FROM known WHERE ours AND NOT deleted"
COUNT_LISTED = "SELECT count(*) FROM listed"


class Known(NamedTuple):
    """The winning change of a page."""

    page_key: str
    revision: int
    deleted: bool
    ours: bool  # by this connector


class WantedPage(NamedTuple):
    """A page to fetch."""

    page_key: str
    listed: Listed
    why: Why
    least: int = 0  # the lowest revision to send it with


class Ledger:
    """One comparison of one connector's pages. Close it."""

    def __init__(self, site: str, file: Path | None = None) -> None:
        """`file`: keeps known pages for the next time; default: a temporary one.

        Raises:
            sqlite3.Error, OSError: the file cannot be written.
        """
        self._site = site
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(file or "", check_same_thread=False)
        with self._db:
            self._db.executescript(SCHEMA)
            self._db.execute("DELETE FROM listed")

    def close(self) -> None:
        self._db.close()

    def add_listed(self, listed: Iterable[Listed]) -> None:
        """Add a part of an inventory. A page counts as listed if one of several inventories lists it."""
        with self._db:
            self._db.executemany(ADD_LISTED, [(self._key(one), one.revision) for one in listed])

    def add_known(self, known: Iterable[Known]) -> None:
        """Add changes. The highest revision wins, and at the same revision a delete."""
        with self._db:
            self._db.executemany(ADD_KNOWN, known)

    def add_done(self, done: Iterable[Listed]) -> None:
        """Mark pages as done, so that they are not fetched again."""
        self.add_known(Known(self._key(one), one.revision, deleted=False, ours=True) for one in done)

    def wanted(self, after: str, limit: int, before: int = 0) -> list[WantedPage]:
        """Pages to fetch, in the order of their keys, from after the key `after`.

        Args:
            before: a revision. Our own deletes up to it do not count, and revived pages get it.
        """
        asked = {"after": after, "limit": limit, "before": before}
        return [
            WantedPage(key, _listed(key, revision), why, least=before if why == "revived" else 0)
            for key, revision, why in self._db.execute(WANTED, asked)
        ]

    def gone(self, after: str, limit: int, before: int) -> list[tuple[str, Listed]]:
        """Keys and pages of this connector that are not listed and have no change since `before`."""
        asked = {"after": after, "limit": limit, "before": before}
        return [(key, _listed(key, revision)) for key, revision in self._db.execute(GONE, asked)]

    def count_wanted(self, before: int = 0) -> dict[Why, int]:
        return dict(self._db.execute(COUNT_WANTED, {"before": before}))

    def count_gone(self, before: int) -> int:
        return self._number(COUNT_GONE, before)

    def count_ours(self) -> int:
        """The number of this connector's public pages."""
        return self._number(COUNT_OURS)

    def count_listed(self) -> int:
        return self._number(COUNT_LISTED)

    def _key(self, listed: Listed) -> str:
        return page_key(self._site, listed.lang, listed.page_id)

    def _number(self, question: str, before: int = 0) -> int:
        (number,) = self._db.execute(question, {"before": before}).fetchone()
        return int(number)


def _listed(key: str, revision: int) -> Listed:
    address = parse_page_key(key)
    return Listed(address.page_id, address.lang, revision)
