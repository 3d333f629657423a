"""Watches a folder, so that a saved file is searchable as fast as a save in a CMS.

    a file system event (or ten seconds without one) ─▶ scan ─▶ compare with the last one ─▶ intake, save lane

Events are only hints: a moved folder is one event, and network disks may send none. The difference of two scans counts.
So no state is kept that could be lost; a reconcile must run before the watch.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from watchfiles import awatch

from connectors.cms.folder.source import Entry, FolderSource, Page, Scan
from connectors.cms.frame import Listed
from connectors.cms.ledger import WantedPage
from connectors.cms.sync import Courier, SyncOutcome
from pipelines.ingest.accept import Intake
from pipelines.runtime.errors import Retryable
from schemas.keys import page_key

log = logging.getLogger(__name__)

RESCAN = 10_000  # milliseconds without an event until the next scan
# An unmounted disk looks like an empty folder. So if more than half of the pages are gone, and these are more than a
# few, only `pagewire reconcile --force` deletes them.
MOST = 0.5
FEW = 10

OnOutcome = Callable[[SyncOutcome], None]


class Watch:
    """Follows a folder from the state in `seen`. For one task."""

    def __init__(
        self, source: FolderSource, site: str, name: str, intake: Intake, seen: Scan, on_outcome: OnOutcome
    ) -> None:
        self._source = source
        self._site = site
        self._name = name
        self._intake = intake
        self._seen = dict(seen.pages)
        self._unlisted = seen.unlisted
        self._on_outcome = on_outcome
        self._held_back = 0
        self._fresh: set[Page] = set()
        self._highest: dict[Page, int] = {}  # sent revisions that are higher than the file's own

    async def run(self, folder: Path) -> None:
        """Watch until cancelled. Raises: FileNotFoundError: the folder does not exist at the start."""
        async for _ in awatch(folder, watch_filter=None, rust_timeout=RESCAN, yield_on_timeout=True):
            try:
                await self.look()
            except Retryable as err:  # of the folder or the broker; the next scan finds the same difference
                log.warning("looking again in a moment: %s", err)

    async def look(self) -> None:
        """Send the changes since the last scan. Raises: Retryable: the next scan sends them."""
        before = await self._source.now()
        scan = await self._source.scan()
        self._warn_of_unlisted(scan)
        now = scan.pages
        changed = [(page, entry) for page, entry in now.items() if self._seen.get(page) != entry or page in self._fresh]
        # Pages in folders that cannot be listed may still exist.
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
        # A file that changed during the read may change again with the same time, so it is read once more.
        self._fresh = {page for page, entry in changed if entry.revision >= before}
        self._on_outcome(courier.outcome)

    def _warn_of_unlisted(self, scan: Scan) -> None:
        """Log each folder that cannot be listed, once while it lasts."""
        for place in scan.unlisted.keys() - self._unlisted.keys():
            one = scan.unlisted[place]
            log.warning("%s: %s; its pages stay as they are", one.listed.page_id, one.reason)
        self._unlisted = scan.unlisted

    def _wanted(self, page: Page, entry: Entry, before: int) -> WantedPage:
        key = page_key(self._site, page.lang, page.page_id)
        least = self._highest.get(page, -1) + 1
        if page not in self._seen:
            # The page may have been deleted before, with a higher revision than that of a file moved back.
            least = max(least, before)
        return WantedPage(key, entry.listed(page), "newer" if page in self._seen else "revived", least)
