"""Watching a folder: a saved file is searchable as fast as a save in a CMS.

    something happens below it (or ten seconds pass) ─▶ scan ─▶ compare with the last one ─▶ intake, save lane

What happened is only a hint: a moved folder is told as one event, and on network disks there may be none. What counts
is the difference of two scans. So nothing is kept that could be lost; whoever starts to watch reconciles first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from watchfiles import awatch

from connectors.cms.folder.scan import Entry, Page, Scan
from connectors.cms.folder.source import FolderSource
from connectors.cms.frame import Listed
from connectors.cms.ledger import Wanted
from connectors.cms.sync import Courier, Outcome
from pipelines.ingest.importing import Accepts
from pipelines.runtime.errors import Retryable
from schemas.keys import page_key

log = logging.getLogger(__name__)

RESCAN = 10_000  # milliseconds without an event until it is looked all the same
# A disk that was unmounted looks like an empty folder: more than half of the pages, if they are more than a few, go
# only by `pagewire reconcile --force`.
MOST = 0.5
FEW = 10

Told = Callable[[Outcome], None]


class Watch:
    """Follows a folder from the state in which `seen` found it. For one task."""

    def __init__(self, source: FolderSource, site: str, name: str, intake: Accepts, seen: Scan, told: Told) -> None:
        self._source = source
        self._site = site
        self._name = name
        self._intake = intake
        self._seen = dict(seen.pages)
        self._unlisted = seen.unlisted
        self._told = told
        self._held_back = 0
        self._fresh: set[Page] = set()
        self._highest: dict[Page, int] = {}  # revisions above the file's own that were sent

    async def run(self, folder: Path) -> None:
        """Until it is cancelled. Raises: FileNotFoundError: there is no such folder to begin with."""
        async for _ in awatch(folder, watch_filter=None, rust_timeout=RESCAN, yield_on_timeout=True):
            try:
                await self.look()
            except Retryable as err:  # the folder, or the broker; the next look finds the same difference
                log.warning("looking again in a moment: %s", err)

    async def look(self) -> None:
        """Send what is different since the last look. Raises: Retryable: and then the next look does it."""
        before = await self._source.now()
        scan = await self._source.scan()
        self._tell_unlisted(scan)
        now = scan.pages
        changed = [(page, entry) for page, entry in now.items() if self._seen.get(page) != entry or page in self._fresh]
        # What nobody may look into may be there still.
        gone = [
            (page, entry)
            for page, entry in self._seen.items()
            if page not in now and scan.unlisted.keys().isdisjoint((entry.path, *entry.path.parents))
        ]
        held_back = len(gone) > FEW and len(gone) > MOST * len(self._seen)
        if held_back and len(gone) != self._held_back:
            log.warning(
                "%d of %d pages are gone at once, nothing is deleted; if it is meant: pagewire reconcile %s %s --force",
                len(gone), len(self._seen), self._site, self._name,
            )  # fmt: skip
        self._held_back = len(gone) if held_back else 0
        if held_back:
            gone = []
        if not changed and not gone:
            return
        courier = Courier(self._source, self._site, self._name, self._intake, "save")
        wanted = [self._wanted(page, entry, before) for page, entry in changed]
        if wanted:
            await courier.deliver(wanted)
        deletes = {page: max(before, entry.revision + 1, self._highest.get(page, 0) + 1) for page, entry in gone}
        if deletes:
            await courier.delete([Listed(page.page_id, page.lang, at) for page, at in deletes.items()])
        self._highest |= deletes
        self._highest |= {page: one.least for (page, _), one in zip(changed, wanted, strict=True) if one.least}
        self._seen.update(changed)
        for page in deletes:
            del self._seen[page]
        # What was written while it was read may be written once more with the same time: read again in any case.
        self._fresh = {page for page, entry in changed if entry.revision >= before}
        self._told(courier.outcome)

    def _tell_unlisted(self, scan: Scan) -> None:
        """Once for each folder, while it is so."""
        for place in scan.unlisted.keys() - self._unlisted.keys():
            one = scan.unlisted[place]
            log.warning("%s: %s; its pages stay as they are", one.listed.page_id, one.reason)
        self._unlisted = scan.unlisted

    def _wanted(self, page: Page, entry: Entry, before: int) -> Wanted:
        key = page_key(self._site, page.lang, page.page_id)
        least = self._highest.get(page, -1) + 1
        if page not in self._seen:
            # It may have been deleted before: a file that is moved back with its folder is older than that.
            least = max(least, before)
        return Wanted(key, entry.listed(page), "newer" if page in self._seen else "revived", least)
