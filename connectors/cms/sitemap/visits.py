"""The last result for each address, on disk, so that an unchanged page costs a 304 and can still be sent.

Losing the file costs one visit of every page, and nothing else. So does a version that takes the content out of pages
otherwise: what reads the same is the same revision.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Literal

from schemas.page import PageDocument
from text.reader import FINDER

# page: a public page. moved: its canonical address is `target`. nothing: gone, or excluded from searches.
Kind = Literal["page", "moved", "nothing"]
FORGOTTEN_AFTER = 90 * 86_400_000  # milliseconds that an unlisted address is kept

SCHEMA = """
PRAGMA synchronous = OFF;
CREATE TABLE IF NOT EXISTS visit (
    url TEXT PRIMARY KEY, kind TEXT, target TEXT, etag TEXT, modified TEXT, fetched_at INTEGER, seen_at INTEGER,
    page_id TEXT, lang TEXT, revision INTEGER, digest BLOB, document BLOB, links BLOB, problem TEXT, why TEXT
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_page ON visit (page_id, lang);
"""
COLUMNS = "url, kind, target, etag, modified, fetched_at, page_id, lang, revision, why, links, problem"


@dataclass(frozen=True)
class Visit:
    """The last result for one address."""

    url: str
    kind: Kind
    target: str = ""
    etag: str | None = None
    modified: str | None = None
    fetched_at: int = 0  # milliseconds
    page_id: str = ""
    lang: str = ""
    revision: int = 0  # when this content was first seen
    why: str = ""  # the reason if it is no page for searches
    links: tuple[str, ...] = ()
    problem: str | None = None  # why the last read failed; the other fields are of the previous read


class Visits:
    """The visits to one site. Close it. Not thread-safe."""

    def __init__(self, file: Path, *, documents: bool = False) -> None:
        """`documents`: pages have linked documents attached. Where this has changed, all pages are fetched anew."""
        finder = -FINDER if documents else FINDER
        file.parent.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(file, check_same_thread=False)
        with self._db:
            self._db.executescript(SCHEMA)
            if "why" not in {column for _, column, *_ in self._db.execute("PRAGMA table_info(visit)")}:
                self._db.execute("ALTER TABLE visit ADD COLUMN why TEXT")  # written by 0.1

            if self._db.execute("PRAGMA user_version").fetchone() != (finder,):
                self._db.execute("UPDATE visit SET etag = NULL, modified = NULL, fetched_at = 0")
                self._db.execute(f"PRAGMA user_version = {finder}")

    def close(self) -> None:
        self._db.close()

    def get(self, url: str) -> Visit | None:
        row = self._db.execute(f"SELECT {COLUMNS} FROM visit WHERE url = ?", (url,)).fetchone()  # noqa: S608
        if row is None:
            return None
        *values, why, links, problem = row
        found = tuple(json.loads(zlib.decompress(links))) if links else ()
        return replace(Visit(*values), why=why or "", links=found, problem=problem)

    def keep(self, visit: Visit, now: int, document: PageDocument | None = None) -> Visit:
        """Store a visit, and return it. An unchanged document keeps its revision."""
        before = self.get(visit.url)
        packed = zlib.compress(json.dumps(visit.links).encode()) if visit.links else None
        if document is None:
            values: tuple[bytes | None, bytes | None] = (None, None)
        else:
            blank = document.model_copy(update={"revision": None, "left_out": {}})  # a menu is no part of it
            digest = blake2b(blank.model_dump_json().encode(), digest_size=16).digest()
            known = self._db.execute("SELECT digest FROM visit WHERE url = ?", (visit.url,)).fetchone()
            same = before is not None and known is not None and known[0] == digest
            revision = before.revision if before and same else max(now, before.revision + 1 if before else 0)
            visit = replace(visit, revision=revision)
            document = document.model_copy(update={"revision": revision})
            values = (digest, zlib.compress(document.model_dump_json().encode()))
        with self._db:
            self._db.execute(
                "INSERT OR REPLACE INTO visit VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    visit.url, visit.kind, visit.target, visit.etag, visit.modified, visit.fetched_at, now,
                    visit.page_id, visit.lang, visit.revision, *values, packed, visit.problem, visit.why,
                ),
            )  # fmt: skip
        return visit

    def seen(self, url: str, now: int) -> None:
        """Note that the address is still listed, without a request."""
        self._update("seen_at = ?", now, url)

    def unchanged(self, url: str, now: int) -> None:
        """Note that the page is unchanged."""
        self._update("problem = NULL, seen_at = ?, fetched_at = ?", now, now, url)

    def unread(self, url: str, now: int, problem: str) -> None:
        """Note why the page cannot be read. Its last document is kept."""
        self._update("problem = ?, seen_at = ?", problem, now, url)

    def documents(self, pages: Sequence[tuple[str, str]]) -> list[tuple[PageDocument | None, str | None]]:
        """Document and problem of each page, by id and language; both None for one that is gone."""
        found: list[tuple[PageDocument | None, str | None]] = []
        for page in pages:
            row = self._db.execute(
                "SELECT document, problem FROM visit WHERE page_id = ? AND lang = ? AND kind = 'page' "
                "ORDER BY fetched_at DESC LIMIT 1",
                page,
            ).fetchone()
            document, problem = row or (None, None)
            read = PageDocument.model_validate_json(zlib.decompress(document)) if document else None
            found.append((read, problem))
        return found

    def forget(self, now: int) -> None:
        """Delete addresses that have not been listed for `FORGOTTEN_AFTER`."""
        with self._db:
            self._db.execute("DELETE FROM visit WHERE seen_at < ?", (now - FORGOTTEN_AFTER,))

    def _update(self, what: str, *values: object) -> None:
        with self._db:
            self._db.execute(f"UPDATE visit SET {what} WHERE url = ?", values)  # noqa: S608
