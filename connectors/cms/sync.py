"""Sync: all that a source lists, through the same door as a single save, in the lane that saves overtake; resumable.

    inventory ─▶ ledger ─▶ fetch ─▶ intake ─▶ ledger, which remembers it until the sync has come to its end

What is sent twice all the same is the same revision and changes nothing.
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

from connectors.cms.frame import Barred, Listed, Omitted, Source, Unreadable
from connectors.cms.ledger import Ledger, Wanted
from connectors.cms.own_thread import OwnThread
from pipelines.ingest.accept import Acceptance, Change
from pipelines.ingest.importing import BATCH, BATCH_BYTES, FOLDER, Accepts, accept_each, weight
from pipelines.runtime.errors import Permanent, Retryable
from pipelines.runtime.record import Lane
from pipelines.runtime.retry import patiently
from schemas.keys import page_key
from schemas.page import PageDocument

log = logging.getLogger(__name__)

FETCHED = 500  # pages asked for together
LISTED = 1_000  # pages of an inventory put into the ledger together
TOLD = 100  # failures told one by one; all are counted
PAUSES = (2.0, 10.0, 30.0)  # seconds before the next try at a CMS that is away; a restart takes less
LONGEST_PAUSE = 120.0  # seconds; what asks for more with Retry-After is left for the next run


class AlreadyRunning(Permanent):
    """One sync or reconcile of a connector at a time."""

    code = "already-running"


@dataclass(frozen=True)
class Progress:
    """How far it is: pages listed, records of the log, or pages sent or deleted."""

    step: Literal["log", "inventory", "pages"]
    done: int
    total: int | None


Report = Callable[[Progress], None]
Settled = Callable[[Sequence[Listed]], Awaitable[None]]


@dataclass(frozen=True)
class Failure:
    """A page that could not be read, or that the intake refused."""

    page_id: str
    lang: str
    reason: str


async def _nothing(_: Sequence[Listed]) -> None:
    pass


@dataclass
class Inventory:
    """What an inventory told besides the pages."""

    omitted: dict[str, str] = field(default_factory=dict)  # addresses that are no pages for the search, and why
    unlisted: list[Unreadable] = field(default_factory=list)  # parts of which nobody knows what is there


@dataclass
class Outcome:
    """What became of the pages that were asked for."""

    sent: int = 0
    deleted: int = 0
    superseded: int = 0  # something newer was there already
    left_out: int = 0  # gone or barred when they were to be fetched, or too young: their own webhook tells
    failed: int = 0
    failures: list[Failure] = field(default_factory=list)
    revisions: dict[str, int] = field(default_factory=dict)  # of what was sent, by page key
    deletes: list[str] = field(default_factory=list)  # page keys
    omitted: dict[str, str] = field(default_factory=dict)  # addresses that are no pages for the search, and why

    def fail(self, listed: Listed, reason: str) -> None:
        self.failed += 1
        if len(self.failures) < TOLD:
            self.failures.append(Failure(listed.page_id, listed.lang, reason))

    def take_inventory(self, found: Inventory) -> None:
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


async def sync(source: Source, site: str, name: str, intake: Accepts, home: Path, report: Report) -> Outcome:
    """Fetch everything that `source` lists, and send it.

    Interrupted, the next one goes on there, and so does one after a sync that left pages unread.

    Args:
        name: of the connector, the source of its changes.
        home: settings.home.

    Raises:
        AlreadyRunning. Retryable: the CMS or the broker is away; what was sent until then is remembered.
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
            report(Progress("pages", done, total))

            async def settled(pages: Sequence[Listed]) -> None:
                nonlocal done
                await own.do(ledger.add_done, pages)
                done += len(pages)
                report(Progress("pages", done, total))

            after = ""
            while wanted := await own.do(ledger.wanted, after, FETCHED):
                after = wanted[-1].page_key
                await courier.deliver(wanted, settled)
        if not courier.outcome.failed:
            journal.unlink(missing_ok=True)
    return courier.outcome


async def take_inventory(source: Source, own: OwnThread[Ledger], report: Report) -> Inventory:
    """Put the whole inventory into the ledger. Returns: what it left out.

    Raises:
        Retryable, Permanent: it did not come to its end.
    """

    found = Inventory()

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
                if isinstance(listed, Unreadable):
                    found.unlisted.append(listed)
                    continue
                batch.append(listed)
                if len(batch) == LISTED:
                    await own.do(own.thing.add_listed, batch)
                    count += len(batch)
                    report(Progress("inventory", count, None))
                    batch = []
        await own.do(own.thing.add_listed, batch)
        report(Progress("inventory", count + len(batch), count + len(batch)))

    await patiently(once, _pause)
    return found


class Courier:
    """Fetches pages of one connector and hands them to the intake."""

    def __init__(self, source: Source, site: str, name: str, intake: Accepts, lane: Lane = "bulk") -> None:
        self._lane: Lane = lane
        self._source = source
        self._site = site
        self._name = name
        self._intake = intake
        self.outcome = Outcome()
        self.barred: list[Listed] = []  # and published before: to be deleted

    async def deliver(self, wanted: Sequence[Wanted], settled: Settled = _nothing) -> None:
        """Fetch these pages and send them. One that fails does not stop the others.

        Args:
            settled: told of pages that need no further try.

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
                    if isinstance(one, Unreadable):
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


def _at_least(page: PageDocument, wanted: Wanted | None) -> PageDocument:
    if wanted is None or (page.revision or 0) >= wanted.least:
        return page
    return page.model_copy(update={"revision": wanted.least})


def _pause(err: Retryable, failures: int) -> float | None:
    """A few times, while a service is away; for as long as it asks for."""
    asked = getattr(err, "retry_after", None) or 0.0
    if failures > len(PAUSES) or asked > LONGEST_PAUSE:
        return None
    log.warning("trying again: %s", err)
    return max(PAUSES[failures - 1], asked)


@contextmanager
def alone(home: Path, site: str, name: str) -> Iterator[None]:
    """One at a time on this machine. On another one nothing breaks: equal changes are equal revisions.

    Raises:
        AlreadyRunning.
    """
    path = _file(home, site, name, "lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # goes with the process, however it ends
        except OSError:
            raise AlreadyRunning(f"an import or reconcile of connector {name!r} of site {site} runs already") from None
        yield


def _file(home: Path, site: str, name: str, kind: str) -> Path:
    digest = blake2b(f"{site}/{name}".encode(), digest_size=6).hexdigest()
    return home / FOLDER / f"{name}-{digest}.{kind}"
