"""A folder of pages as a source."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml
from pydantic import ValidationError

from connectors.cms.documents import OFFICE, html, split
from connectors.cms.folder.scan import FIELDS, Entry, Page, Scanner, known_fields
from connectors.cms.frame import Listed, Unreadable
from connectors.cms.settings import FolderConnector
from connectors.cms.titles import title_in
from schemas.base import problems
from schemas.page import Attachment, PageDocument

LARGEST = 32 * 1024 * 1024  # bytes of a file of text; the intake's own limit is lower
# File systems stamp changes with a clock that ticks every 4 to 10 ms, behind the one that is asked here.
TICK = 20  # milliseconds


class FolderSource:
    """Pages of a folder; see `scan` for what is one. For one task at a time."""

    def __init__(self, connector: FolderConnector, languages: tuple[str, ...]) -> None:
        self._connector = connector
        self._scanner = Scanner(connector.path, languages)
        self._entries: dict[Page, Entry] | None = None

    @property
    def folder(self) -> Path:
        return self._connector.path

    @property
    def seen(self) -> Mapping[Page, Entry] | None:
        """What the last scan found."""
        return self._entries

    async def scan(self) -> dict[Page, Entry]:
        """All public pages, from a fresh look. Raises: FolderGone."""
        self._entries = await asyncio.to_thread(self._scanner.scan)
        return self._entries

    async def inventory(self) -> AsyncGenerator[Listed, None]:
        """Raises: FolderGone."""
        for page, entry in (await self.scan()).items():
            yield entry.listed(page)

    async def fetch(self, wanted: Sequence[Listed]) -> AsyncGenerator[PageDocument | Unreadable, None]:
        """Raises: FolderGone."""
        entries = self._entries if self._entries is not None else await self.scan()
        for listed in wanted:
            entry = entries.get(Page(listed.page_id, listed.lang))
            if entry is None:
                continue
            found = await asyncio.to_thread(self._read, listed, entry)
            if found is not None:
                yield found

    async def now(self) -> int:
        return int(time.time() * 1000) - TICK

    def _read(self, listed: Listed, entry: Entry) -> PageDocument | Unreadable | None:
        if entry.problem is not None:
            return Unreadable(listed, entry.problem)
        try:
            return self._document(listed, entry)
        except FileNotFoundError:
            return None
        except ValidationError as err:
            return Unreadable(listed, problems(err))
        except (OSError, ValueError, yaml.YAMLError) as err:
            return Unreadable(listed, " ".join(str(err).split()))

    def _document(self, listed: Listed, entry: Entry) -> PageDocument:
        path = entry.path
        values: dict[str, Any] = {"title": path.name}
        values["url"] = self._url(path)
        if path.suffix.lower() not in OFFICE:
            if path.stat().st_size > LARGEST:
                raise ValueError(f"larger than {LARGEST:,} bytes")
            text = path.read_text(encoding="utf-8-sig")
            said, body = split(text)
            values["content"] = html(path, body)
            values |= {name: value for name, value in known_fields(said).items() if name in FIELDS}
            if "title" not in known_fields(said):
                values["title"] = title_in(values["content"]) or path.name.split(".")[0]
        values["attachments"] = tuple(
            Attachment(
                path=str(one),
                media_type=OFFICE.get(one.suffix.lower(), "text/html"),
                title=one.name,
                link=self._url(one),
            )
            for one in entry.attachments
        )
        # By these it was listed; whatever the file says meanwhile is for the next look.
        values |= {"id": listed.page_id, "lang": listed.lang, "revision": entry.revision}
        return PageDocument.model_validate(values)

    def _url(self, path: Path) -> str:
        base = self._connector.url
        return f"{base.rstrip('/')}/{quote(self._scanner.relative(path))}" if base else ""
