"""What lies in a folder of pages: which files, which pages they are, when they changed. No contents.

Markdown and HTML files are pages. An office file is a page of its own, unless a page names it under `attachments`.
`about.de.md` is the German variant of `about`, as in Hugo. Hidden files, drafts and links that lead out of the folder
are not public.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from connectors.cms.documents import OFFICE, SUFFIXES, split
from connectors.cms.frame import Listed
from pipelines.runtime.errors import Retryable
from schemas.base import language_tag
from schemas.page import PageDocument

HEAD = 64 * 1024  # bytes in which front matter ends
FIELDS = frozenset(PageDocument.model_fields) - {"content", "attachments"}
# What Hugo, Jekyll and Eleventy call them.
OTHER_NAMES = {"tags": "keywords", "summary": "description", "lastmod": "changed_at", "date": "changed_at"}


class FolderGone(Retryable):
    """The folder is not there: a disk that is not mounted is no reason to delete its pages."""

    code = "folder-gone"


class Page(NamedTuple):
    """Address of a page within a site."""

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
    """What is known of a file from its first bytes."""

    fields: Mapping[str, Any]
    problem: str | None = None


class Scanner:
    """Scans one folder again and again; files that did not change are not opened twice. Not for two threads at once."""

    def __init__(self, folder: Path, languages: tuple[str, ...]) -> None:
        self._folder = folder.resolve()
        self._languages = languages
        self._heads: dict[Path, tuple[tuple[int, int], _Head]] = {}

    def scan(self) -> dict[Page, Entry]:
        """All public pages. Raises: FolderGone."""
        if not self._folder.is_dir():
            raise FolderGone(f"{self._folder}: no such folder")
        found: dict[Page, Entry] = {}
        heads: dict[Path, tuple[tuple[int, int], _Head]] = {}
        times = dict(self._files())
        for path, stat in times.items():
            if path.suffix.lower() in SUFFIXES:
                stamp = (stat.st_ctime_ns, stat.st_size)
                known = self._heads.get(path)
                heads[path] = known if known and known[0] == stamp else (stamp, _read_head(path))
        self._heads = heads
        attached: set[Path] = set()
        for path, (_, head) in heads.items():
            if head.fields.get("draft") is True or head.fields.get("published") is False:
                continue
            page, entry = self._page(path, head, times)
            attached.update(entry.attachments)
            other = found.get(page)
            if other is not None:
                both = f"two files are this page: {self.relative(other.path)} and {self.relative(path)}"
                entry = Entry(path, max(entry.revision, other.revision), problem=both)
            found[page] = entry
        for path in times:
            if path.suffix.lower() in OFFICE and path not in attached:
                page = Page(self.relative(path), self._languages[0])
                found[page] = Entry(path, _changed(times[path]), (path,))
        return found

    def relative(self, path: Path) -> str:
        return path.relative_to(self._folder).as_posix()

    def address(self, path: Path) -> tuple[str, str]:
        """Page id and language that the name of a Markdown or HTML file says."""
        stem = self.relative(path)[: -len(path.suffix)]
        name, _, lang = stem.rpartition(".")
        if lang in self._languages and name and not name.endswith("/"):
            return name, lang
        return stem, self._languages[0]

    def _page(self, path: Path, head: _Head, times: Mapping[Path, os.stat_result]) -> tuple[Page, Entry]:
        page_id, lang = self.address(path)
        said_id, said_lang = head.fields.get("id", page_id), head.fields.get("lang", lang)
        problem = head.problem
        attachments: list[Path] = []
        for name in _names(head.fields.get("attachments")):
            place = (path.parent / name).resolve()
            if place in times:
                attachments.append(place)
            else:
                problem = problem or f"attachments: {name!r} is no file in this folder"
        own = head.fields.get("revision")
        revision = max(_changed(times[one]) for one in (path, *attachments))
        if isinstance(own, int) and own >= 0:
            revision = own
        return Page(str(said_id), language_tag(str(said_lang))), Entry(path, revision, tuple(attachments), problem)

    def _files(self) -> Iterator[tuple[Path, os.stat_result]]:
        """Files in a stable order. Raises: FolderGone: a part of it cannot be listed, so nobody knows what is there."""

        def give_up(err: OSError) -> None:
            if isinstance(err, FileNotFoundError) and err.filename != str(self._folder):
                return  # gone since it was listed
            raise FolderGone(f"{err.filename}: cannot be listed: {err.strerror}") from err

        for place, folders, files in os.walk(str(self._folder), onerror=give_up):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(files):
                path = Path(place, name)
                if name.startswith(".") or path.suffix.lower() not in SUFFIXES | OFFICE.keys():
                    continue
                try:
                    if path.is_symlink() and not path.resolve().is_relative_to(self._folder):
                        continue
                    yield path, path.stat()
                except OSError:  # gone since it was listed
                    continue


def _changed(stat: os.stat_result) -> int:
    """Milliseconds of the last change of the file or its name: unlike mtime, no copy or rename carries it along."""
    return stat.st_ctime_ns // 1_000_000


def _read_head(path: Path) -> _Head:
    try:
        with path.open("rb") as file:
            text = file.read(HEAD).decode("utf-8-sig", errors="ignore")
        return _Head(known_fields(split(text.replace("\r\n", "\n"))[0]))
    except OSError as err:
        return _Head({}, f"{err.strerror}")
    except (ValueError, yaml.YAMLError) as err:
        return _Head({}, " ".join(str(err).split()))


def known_fields(said: Mapping[str, Any]) -> dict[str, Any]:
    """Of front matter, what a page document knows, `draft`, `published` and `attachments`; the rest is for others."""
    fields: dict[str, Any] = {}
    for name, value in said.items():
        own = OTHER_NAMES.get(name, name)
        if own in FIELDS or name in ("draft", "published", "attachments"):
            fields.setdefault(own, value)
    for name in ("id", "title", "name"):
        if isinstance(fields.get(name), int | float):
            fields[name] = str(fields[name])
    keywords = fields.get("keywords")
    if isinstance(keywords, str):
        fields["keywords"] = [part.strip() for part in keywords.split(",") if part.strip()]
    changed = fields.get("changed_at")
    if isinstance(changed, datetime) and changed.tzinfo is None:
        fields["changed_at"] = changed.replace(tzinfo=UTC)
    elif isinstance(changed, date) and not isinstance(changed, datetime):
        fields["changed_at"] = datetime.combine(changed, time(), UTC)
    return fields


def _names(value: Any) -> list[str]:
    """Of `attachments`: file names, or mappings with a `path`."""
    found = value if isinstance(value, list) else [value]
    names = [one.get("path") if isinstance(one, dict) else one for one in found]
    return [name for name in names if isinstance(name, str)]
