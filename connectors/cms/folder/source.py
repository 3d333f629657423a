"""A folder of pages as a source."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from connectors.cms.documents import OFFICE, html, text_of
from connectors.cms.folder.scan import Entry, Page, Scan, Scanner
from connectors.cms.frame import Listed, Omitted, UnreadablePage
from connectors.cms.front_matter import FIELDS, known_fields, split
from connectors.cms.settings import FolderConnector
from connectors.cms.titles import title_in
from pipelines.runtime.folder import reason
from schemas.page import Attachment, PageDocument

# The clock of file systems ticks every 4 to 10 ms, and lags behind the system's clock.
TICK = 20  # milliseconds


class FolderSource:
    """The pages of a folder (see scan.py). For one task at a time."""

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
        # Keep the listed values; the next scan reads a changed file.
        values |= {"id": listed.page_id, "lang": listed.lang, "revision": entry.revision}
        return PageDocument.model_validate(values)

    def _url(self, path: Path) -> str:
        base = self._connector.url
        return f"{base.rstrip('/')}/{quote(self._scanner.relative(path))}" if base else ""
