"""A folder of pages as a source.

Markdown and HTML files are pages. An office file is a page of its own, unless a page names it under `attachments`.
`about.de.md` is the German variant of `about`, as in Hugo. Hidden files, drafts and links to files outside the folder
are not public.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from pydantic import ValidationError

from connectors.cms.documents import SUFFIXES, fields_of, lang_tag, page_files, text_in, text_of
from connectors.cms.frame import Listed, Omitted, UnreadablePage
from connectors.cms.front_matter import FIELDS, LONGEST_MATTER, is_draft, known_fields, split
from connectors.cms.page_fields import OFFICE, language_of
from connectors.cms.settings import FolderConnector
from pipelines.runtime.errors import Retryable
from pipelines.runtime.folder import Folder, reason
from schemas.base import GivenLang, PageId, Revision, Wire
from schemas.page import Attachment, PageDocument


class FolderGone(Retryable):
    """The folder does not exist. Its pages are kept, since a disk may not be mounted."""

    code = "folder-gone"


class Page(NamedTuple):
    """A page's id and language."""

    page_id: str
    lang: str


@dataclass(frozen=True)
class Entry:
    """The file of a page."""

    path: Path
    revision: int  # milliseconds of the last change, of the attachments too
    attachments: tuple[Path, ...] = ()
    problem: str | None = None  # why it cannot be read as a page

    def listed(self, page: Page) -> Listed:
        return Listed(page.page_id, page.lang, self.revision)


@dataclass(frozen=True)
class _Head:
    """A file's front matter, and what `<html lang>` says."""

    fields: Mapping[str, Any]
    problem: str | None = None
    tag: str | None = None


class _Said(Wire):
    """A page's id, language and revision by its front matter, with the file's name as default."""

    id: PageId
    lang: GivenLang
    revision: Revision | None = None


@dataclass(frozen=True)
class Scan:
    """The result of a scan."""

    pages: dict[Page, Entry]
    omitted: tuple[Omitted, ...] = ()  # links to files outside the folder
    unlisted: Mapping[Path, UnreadablePage] = field(default_factory=dict)  # folders that cannot be listed


class Scanner:
    """Scans one folder repeatedly. Unchanged files are opened once. Not thread-safe."""

    def __init__(self, folder: Path, languages: tuple[str, ...]) -> None:
        self.folder = Folder(folder)
        self._languages = languages
        self._heads: dict[Path, tuple[tuple[int, int], _Head]] = {}

    def scan(self) -> Scan:
        """All public pages. Raises: FolderGone."""
        files: dict[Path, os.stat_result] = {}
        pages: dict[Page, Entry] = {}
        omitted: list[Omitted] = []
        unlisted: dict[Path, UnreadablePage] = {}
        try:
            for found in page_files(self.folder):
                path = found.path
                if found.kind == "link":
                    omitted.append(Omitted(self.relative(path), found.problem))
                elif found.stat is None:
                    unlisted[path] = UnreadablePage(Listed(self.relative(path), self._languages[0], 0), found.problem)
                elif found.problem:
                    pages[Page(*self.address(path))] = Entry(path, _changed(found.stat), problem=found.problem)
                else:
                    files[path] = found.stat
        except OSError as err:
            raise FolderGone(f"{self.folder.path}: {reason(err)}") from err
        self._read_heads(files)
        return Scan(self._pages(files, pages), tuple(omitted), unlisted)

    def _read_heads(self, files: Mapping[Path, os.stat_result]) -> None:
        heads: dict[Path, tuple[tuple[int, int], _Head]] = {}
        for path, stat in files.items():
            if path.suffix.lower() in SUFFIXES:
                stamp = (stat.st_ctime_ns, stat.st_size)
                known = self._heads.get(path)
                heads[path] = known if known and known[0] == stamp else (stamp, _read_head(self.folder, path))
        self._heads = heads

    def _pages(self, files: Mapping[Path, os.stat_result], found: dict[Page, Entry]) -> dict[Page, Entry]:
        attached: set[Path] = set()
        for path, (_, head) in self._heads.items():
            if is_draft(head.fields):
                continue
            page, entry = self._page(path, head, files)
            attached.update(entry.attachments)
            other = found.get(page)
            if other is not None:
                both = f"two files are this page: {self.relative(other.path)} and {self.relative(path)}"
                entry = Entry(path, max(entry.revision, other.revision), problem=both)
            found[page] = entry
        for path in files:
            if path.suffix.lower() in OFFICE and path not in attached:
                page = Page(*self.address(path))
                found[page] = Entry(path, _changed(files[path]), (path,))
        return found

    def relative(self, path: Path) -> str:
        return self.folder.relative(path)

    def address(self, path: Path) -> tuple[str, str]:
        """Page id and language from a file's name; without one there, the site's first."""
        page_id, lang = self._named(path)
        return page_id, lang or self._languages[0]

    def _named(self, path: Path) -> tuple[str, str | None]:
        if path.suffix.lower() not in SUFFIXES:
            return self.relative(path), None
        stem = self.relative(path)[: -len(path.suffix)]
        name, _, lang = stem.rpartition(".")
        if lang in self._languages and name and not name.endswith("/"):
            return name, lang
        return stem, None

    def _page(self, path: Path, head: _Head, files: Mapping[Path, os.stat_result]) -> tuple[Page, Entry]:
        page_id, lang = self._named(path)
        tagged = language_of(head.tag, self._languages)
        page = Page(page_id, lang or (tagged if tagged in self._languages else None) or self._languages[0])
        changed, problem = _changed(files[path]), head.problem
        attachments: list[Path] = []
        for name in _names(head.fields.get("attachments")):
            place = Path(os.path.normpath(path.parent / name))
            if place in files:
                attachments.append(place)
                changed = max(changed, _changed(files[place]))
            else:
                problem = problem or f"attachments: {name!r} is no file in this folder"
        try:
            own = {name: head.fields[name] for name in _Said.model_fields if name in head.fields}
            said = _Said.model_validate({"id": page.page_id, "lang": page.lang} | own)
        except ValidationError as err:
            return page, Entry(path, changed, tuple(attachments), problem or reason(err))
        revision = changed if said.revision is None else said.revision
        return Page(said.id, said.lang), Entry(path, revision, tuple(attachments), problem)


def _changed(stat: os.stat_result) -> int:
    """Time of the last change of the file or its name (ctime), in milliseconds. Copies do not keep it, unlike mtime."""
    return stat.st_ctime_ns // 1_000_000


def _read_head(folder: Folder, path: Path) -> _Head:
    try:
        head = folder.head(path, LONGEST_MATTER)
        lines = head if len(head) < LONGEST_MATTER else head[: head.rfind(b"\n") + 1]  # no incomplete character
        fields, body = split(text_in(path, lines))
        return _Head(known_fields(fields), tag=lang_tag(path, body))
    except Exception as err:  # noqa: BLE001 - one file must not stop the others
        return _Head({}, reason(err))


def _names(value: Any) -> list[str]:
    """The file names in `attachments`, which are names or mappings with a `path`."""
    found = value if isinstance(value, list) else [value]
    names = [one.get("path") if isinstance(one, dict) else one for one in found]
    return [name for name in names if isinstance(name, str)]


# The clock of file systems ticks every 4 to 10 ms, and lags behind the system's clock.
TICK = 20  # milliseconds


class FolderSource:
    """The pages of a folder (see Scanner). For one task at a time."""

    def __init__(self, connector: FolderConnector, languages: tuple[str, ...]) -> None:
        self._connector = connector
        self._scanner = Scanner(connector.path, languages)
        self._seen: Scan | None = None

    @property
    def folder(self) -> Path:
        return self._connector.path

    @property
    def seen(self) -> Scan | None:
        """The last scan."""
        return self._seen

    async def scan(self) -> Scan:
        """Scan all public pages. Raises: FolderGone."""
        self._seen = await asyncio.to_thread(self._scanner.scan)
        return self._seen

    async def inventory(self) -> AsyncGenerator[Listed | Omitted | UnreadablePage, None]:
        """Raises: FolderGone."""
        found = await self.scan()
        for page, entry in found.pages.items():
            yield entry.listed(page)
        for omitted in found.omitted:
            yield omitted
        for unlisted in found.unlisted.values():
            yield unlisted

    async def fetch(self, wanted: Sequence[Listed]) -> AsyncGenerator[PageDocument | UnreadablePage, None]:
        """Raises: FolderGone."""
        seen = self._seen or await self.scan()
        for listed in wanted:
            entry = seen.pages.get(Page(listed.page_id, listed.lang))
            if entry is None:
                continue
            found = await asyncio.to_thread(self._read, listed, entry)
            if found is not None:
                yield found

    async def now(self) -> int:
        return int(time.time() * 1000) - TICK

    def _read(self, listed: Listed, entry: Entry) -> PageDocument | UnreadablePage | None:
        if entry.problem is not None:
            return UnreadablePage(listed, entry.problem)
        try:
            return self._document(listed, entry)
        except FileNotFoundError:
            return None
        except Exception as err:  # noqa: BLE001 - one file must not stop the others
            return UnreadablePage(listed, reason(err))

    def _document(self, listed: Listed, entry: Entry) -> PageDocument:
        path = entry.path
        values: dict[str, Any] = {"title": path.name}
        values["url"] = self._url(path)
        if path.suffix.lower() not in OFFICE:
            said, body = split(text_of(self._scanner.folder, path))
            values |= fields_of(path, body)
            values |= {name: value for name, value in known_fields(said).items() if name in FIELDS}
            values["title"] = values["title"] or path.name.split(".")[0]
        values["attachments"] = tuple(
            Attachment(
                path=str(one),
                media_type=OFFICE.get(one.suffix.lower(), "text/html"),
                title=one.name,
                link=self._url(one),
            )
            for one in entry.attachments
        )
        # Keep the listed values; the next scan reads a changed file.
        values |= {"id": listed.page_id, "lang": listed.lang, "revision": entry.revision}
        return PageDocument.model_validate(values)

    def _url(self, path: Path) -> str:
        base = self._connector.url
        return f"{base.rstrip('/')}/{quote(self._scanner.relative(path))}" if base else ""
