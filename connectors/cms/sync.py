"""Sync: sends all pages of a source to the intake, in the bulk lane. Resumable.

    inventory ─▶ ledger ─▶ fetch ─▶ intake ─▶ ledger, which keeps the progress until the sync is complete

A page that is sent twice has the same revision, and the second time changes nothing.
"""

from __future__ import annotations

import fcntl
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Literal

from connectors.cms.frame import Barred, CmsSource, Listed, Omitted, OwnThread, UnreadablePage
from connectors.cms.ledger import Ledger, WantedPage
from pipelines.ingest.accept import Acceptance, Change, Intake
from pipelines.ingest.importing import BATCH, BATCH_BYTES, FOLDER, accept_each, weight
from pipelines.runtime.errors import Permanent, Retryable
from pipelines.runtime.record import Lane
from pipelines.runtime.retry import patiently
from schemas.keys import page_key
from schemas.page import PageDocument

log = logging.getLogger(__name__)

FETCHED = 500  # pages fetched together
LISTED = 1_000  # pages of an inventory put into the ledger together
TOLD = 100  # failures reported one by one; all are counted
PAUSES = (2.0, 10.0, 30.0)  # seconds between tries while a CMS is down; a restart takes less
LONGEST_PAUSE = 120.0  # seconds; with a longer Retry-After, pages are left for the next run


class AlreadyRunning(Permanent):
    """Another sync or reconcile of this connector is running."""

    code = "already-running"


@dataclass(frozen=True)
class SyncProgress:
    """The progress: pages listed, records of the log read, or pages sent or deleted."""

    step: Literal["log", "inventory", "pages"]
    done: int
    total: int | None


Report = Callable[[SyncProgress], None]
Settled = Callable[[Sequence[Listed]], Awaitable[None]]


@dataclass(frozen=True)
class PageFailure:
    """A page that could not be read, or that the intake refused."""

    page_id: str
    lang: str
    reason: str


async def _nothing(_: Sequence[Listed]) -> None:
    pass


@dataclass
class InventoryResult:
    """The results of an inventory besides the pages."""

    omitted: dict[str, str] = field(default_factory=dict)  # addresses that are no pages for the search, and why
    unlisted: list[UnreadablePage] = field(default_factory=list)  # parts that could not be listed


@dataclass
class SyncOutcome:
    """The outcome for the requested pages."""

    sent: int = 0
    deleted: int = 0
    superseded: int = 0  # a newer change had been accepted
    left_out: int = 0  # gone or barred meanwhile, or so new that their webhook will send them
    failed: int = 0
    failures: list[PageFailure] = field(default_factory=list)
    revisions: dict[str, int] = field(default_factory=dict)  # of sent pages, by page key
    deletes: list[str] = field(default_factory=list)  # page keys
    omitted: dict[str, str] = field(default_factory=dict)  # addresses that are no pages for the search, and why

    def fail(self, listed: Listed, reason: str) -> None:
        self.failed += 1
        if len(self.failures) < TOLD:
            self.failures.append(PageFailure(listed.page_id, listed.lang, reason))

    def take_inventory(self, found: InventoryResult) -> None:
        self.omitted = found.omitted
        for one in found.unlisted:
            self.fail(one.listed, one.reason)

    def take(self, acceptances: Sequence[Acceptance]) -> None:
        for one in acceptances:
            if one.superseded:
                self.superseded += 1
            else:
                self.sent += 1
                self.revisions[one.page_key] = one.revision

    def take_deletes(self, acceptances: Sequence[Acceptance]) -> None:
        for one in acceptances:
            if one.superseded:
                self.superseded += 1
            else:
                self.deleted += 1
                self.deletes.append(one.page_key)


async def sync(source: CmsSource, site: str, name: str, intake: Intake, home: Path, report: Report) -> SyncOutcome:
    """Fetch all pages that `source` lists, and send them.

    Resumes an interrupted sync, and one that could not read some pages.

    Args:
        name: the connector's name, which becomes the source of its changes.
        home: settings.home.

    Raises:
        AlreadyRunning. Retryable: the CMS or the broker is down; the progress is kept.
        Permanent: the CMS refuses.
    """
    journal = _file(home, site, name, "sync")
    courier = Courier(source, site, name, intake)
    with alone(home, site, name):
        async with OwnThread(lambda: Ledger(site, journal)) as own:
            ledger = own.thing
            courier.outcome.take_inventory(await take_inventory(source, own, report))
            total = await own.do(ledger.count_listed)
            done = total - sum((await own.do(ledger.count_wanted)).values())
            report(SyncProgress("pages", done, total))

            async def settled(pages: Sequence[Listed]) -> None:
                nonlocal done
                await own.do(ledger.add_done, pages)
                done += len(pages)
                report(SyncProgress("pages", done, total))

            after = ""
            while wanted := await own.do(ledger.wanted, after, FETCHED):
                after = wanted[-1].page_key
                await courier.deliver(wanted, settled)
        if not courier.outcome.failed:
            journal.unlink(missing_ok=True)
    return courier.outcome


async def take_inventory(source: CmsSource, own: OwnThread[Ledger], report: Report) -> InventoryResult:
    """Put the whole inventory into the ledger. Returns its other results.

    Raises:
        Retryable, Permanent: the inventory is incomplete.
    """

    found = InventoryResult()

    async def once() -> None:
        found.omitted.clear()
        found.unlisted.clear()
        count = 0
        batch: list[Listed] = []
        async with aclosing(source.inventory()) as inventory:
            async for listed in inventory:
                if isinstance(listed, Omitted):
                    found.omitted[listed.address] = listed.reason
                    continue
                if isinstance(listed, UnreadablePage):
                    found.unlisted.append(listed)
                    continue
                batch.append(listed)
                if len(batch) == LISTED:
                    await own.do(own.thing.add_listed, batch)
                    count += len(batch)
                    report(SyncProgress("inventory", count, None))
                    batch = []
        await own.do(own.thing.add_listed, batch)
        report(SyncProgress("inventory", count + len(batch), count + len(batch)))

    await patiently(once, _pause)
    return found


class Courier:
    """Fetches pages of one connector and hands them to the intake."""

    def __init__(self, source: CmsSource, site: str, name: str, intake: Intake, lane: Lane = "bulk") -> None:
        self._lane: Lane = lane
        self._source = source
        self._site = site
        self._name = name
        self._intake = intake
        self.outcome = SyncOutcome()
        self.barred: list[Listed] = []  # pages to delete, if they were published before

    async def deliver(self, wanted: Sequence[WantedPage], settled: Settled = _nothing) -> None:
        """Fetch these pages and send them. One that fails does not stop the others.

        Args:
            settled: called with pages that need no further try.

        Raises:
            Retryable, Permanent: the CMS or the broker.
        """
        open_pages = {one.page_key: one for one in wanted}
        barred: dict[str, Listed] = {}

        async def send(pages: Sequence[PageDocument]) -> None:
            accepted = {one.page_key for one in await self._accept(pages)}
            done = [open_pages.pop(self._key(page), None) for page in pages]
            await settled([one.listed for one in done if one is not None and one.page_key in accepted])

        async def once() -> None:
            batch: list[PageDocument] = []
            heavy = 0
            async with aclosing(self._source.fetch([one.listed for one in open_pages.values()])) as fetched:
                async for one in fetched:
                    if isinstance(one, UnreadablePage):
                        open_pages.pop(page_key(self._site, one.listed.lang, one.listed.page_id), None)
                        self.outcome.fail(one.listed, one.reason)
                        continue
                    if isinstance(one, Barred):
                        self.outcome.omitted[one.address] = one.reason
                        key = page_key(self._site, one.listed.lang, one.listed.page_id)
                        if key in open_pages and open_pages[key].why == "newer":
                            barred[key] = one.listed
                        continue
                    page = _at_least(one, open_pages.get(self._key(one)))
                    batch.append(page)
                    heavy += weight(page)
                    if len(batch) == BATCH or heavy >= BATCH_BYTES:
                        await send(batch)
                        batch, heavy = [], 0
            if batch:
                await send(batch)

        await patiently(once, _pause)
        self.barred += barred.values()
        self.outcome.left_out += len(open_pages)
        await settled([one.listed for one in open_pages.values()])

    async def delete(self, gone: Sequence[Listed]) -> None:
        """Delete these pages, each with its revision. Raises: Retryable: no broker."""
        changes = [Change("delete", PageDocument(id=one.page_id, lang=one.lang, revision=one.revision)) for one in gone]

        async def once() -> None:
            self.outcome.take_deletes(await self._intake.accept(self._site, changes, self._name, self._lane))

        await patiently(once, _pause)

    async def _accept(self, pages: Sequence[PageDocument]) -> list[Acceptance]:
        def refused(page: PageDocument, why: str) -> None:
            self.outcome.fail(Listed(page.id, page.lang or "", page.revision or 0), why)

        taken = await accept_each(self._intake, self._site, pages, self._name, self._lane, refused)
        self.outcome.take(taken)
        return taken

    def _key(self, page: PageDocument) -> str:
        return page_key(self._site, page.lang or "", page.id)


def _at_least(page: PageDocument, wanted: WantedPage | None) -> PageDocument:
    if wanted is None or (page.revision or 0) >= wanted.least:
        return page
    return page.model_copy(update={"revision": wanted.least})


def _pause(err: Retryable, failures: int) -> float | None:
    """Seconds until the next try; None: no further try. Follows Retry-After."""
    asked = getattr(err, "retry_after", None) or 0.0
    if failures > len(PAUSES) or asked > LONGEST_PAUSE:
        return None
    log.warning("trying again: %s", err)
    return max(PAUSES[failures - 1], asked)


@contextmanager
def alone(home: Path, site: str, name: str) -> Iterator[None]:
    """Lock the connector on this machine. On two machines, nothing breaks: equal changes have equal revisions.

    Raises:
        AlreadyRunning.
    """
    path = _file(home, site, name, "lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # released when the process ends, in any way
        except OSError:
            raise AlreadyRunning(f"an import or reconcile of connector {name!r} of site {site} runs already") from None
        yield


def _file(home: Path, site: str, name: str, kind: str) -> Path:
    digest = blake2b(f"{site}/{name}".encode(), digest_size=6).hexdigest()
    return home / FOLDER / f"{name}-{digest}.{kind}"
