"""Reconcile: sends pages that missed webhooks have left out, and deletes pages that are not public any more.

    clock of the CMS ─▶ cms.changes ─▶ known ──┐
                        inventory ───▶ listed ─┴─▶ fetch what is missing or newer ─▶ intake, bulk lane
                        inventory again ─▶ gone ─▶ deletes, with the time on that clock as their revision
             pages not shown to visitors ─▶ deletes, with the pages' revisions

The clock is read first, so an editor's change meanwhile has a higher revision and wins. A page counts as gone if two
inventories in a row do not list it, since a paged list may skip pages while others are deleted. Nothing is deleted
unless both inventories are complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from more_itertools import chunked

from connectors.cms.frame import CmsSource, OwnThread
from connectors.cms.ledger import Known, Ledger, Why
from connectors.cms.settings import ConnectorsSettings
from connectors.cms.sources import opened
from connectors.cms.sync import FETCHED, Courier, PageFailure, Report, SyncProgress, alone, take_inventory
from pipelines.ingest.accept import Intake
from pipelines.operate.audit.audit import OpenLog
from pipelines.operate.states import ConnectorRunOutcome, ConnectorRuns
from pipelines.runtime.bus import LogScan
from pipelines.runtime.record import Record
from schemas.base import WireError
from schemas.page import PageChange

MOST = 0.5  # share of a connector's pages that may be deleted without `force`


@dataclass(frozen=True)
class Reconciled:
    """The findings and actions of a reconcile."""

    site: str
    connector: str
    listed: int  # public pages
    known: int  # public pages of this connector by the log
    missing: int  # listed, but not in the log
    newer: int  # in the log with an older revision
    revived: int  # listed, but deleted in the log by this connector
    gone: int  # in the log, but not listed
    barred: int  # in the log and listed, but not shown to visitors any more
    refused: bool  # nothing was deleted: too many pages are gone or barred, or a part could not be listed
    dry_run: bool
    sent: int
    deleted: int
    superseded: int  # a newer change had been accepted
    left_out: int  # gone or barred meanwhile, or so new that their webhook will send them
    failed: int
    failures: list[PageFailure]
    omitted: dict[str, str]  # addresses that are no pages for the search, and why

    @property
    def done(self) -> bool:
        """Whether this run has done all that it could."""
        return not self.refused and not self.failed


async def reconcile(
    source: CmsSource,
    site: str,
    name: str,
    open_log: OpenLog,
    intake: Intake,
    home: Path,
    report: Report = lambda _: None,
    *,
    force: bool = False,
    dry_run: bool = False,
) -> Reconciled:
    """Compare the pages of `source` with the log's pages of the connector `name`, and send the difference.

    Args:
        home: settings.home.
        force: delete even more than half of the connector's pages, and even if a part could not be listed.
        dry_run: only report.

    Raises:
        AlreadyRunning. Retryable: the CMS or the broker is down. Permanent: the CMS refuses.
    """
    courier = Courier(source, site, name, intake)
    with alone(home, site, name):
        async with OwnThread(lambda: Ledger(site)) as own:
            ledger = own.thing
            before = await source.now()
            async with open_log() as log:
                await _read_log(log, own, site, name, report)
            inventory = await take_inventory(source, own, report)
            if await own.do(ledger.count_gone, before):
                inventory = await take_inventory(source, own, report)
            courier.outcome.take_inventory(inventory)
            gone = await own.do(ledger.count_gone, before)
            known = await own.do(ledger.count_ours)
            wanted: dict[Why, int] = await own.do(ledger.count_wanted, before)
            few = force or gone <= known * MOST
            sure = force or not (gone and inventory.unlisted)
            if not dry_run:
                todo = sum(wanted.values()) + (gone if few and sure else 0)
                await _send(courier, own, before, todo, report)
                few = force or gone + len(courier.barred) <= known * MOST
                if few:
                    for some in chunked(courier.barred, FETCHED):
                        await courier.delete(some)
                if few and sure:
                    await _delete(courier, own, before, todo, report)
            outcome = courier.outcome
            return Reconciled(
                site=site,
                connector=name,
                listed=await own.do(ledger.count_listed),
                known=known,
                missing=wanted.get("missing", 0),
                newer=wanted.get("newer", 0),
                revived=wanted.get("revived", 0),
                gone=gone,
                barred=len(courier.barred),
                refused=not (few and sure),
                dry_run=dry_run,
                sent=outcome.sent,
                deleted=outcome.deleted,
                superseded=outcome.superseded,
                left_out=outcome.left_out,
                failed=outcome.failed,
                failures=outcome.failures,
                omitted=outcome.omitted,
            )


async def _read_log(log: LogScan, own: OwnThread[Ledger], site: str, name: str, report: Report) -> None:
    ends = await log.ends()  # first, since it may find new partitions
    begins = await log.begins()
    total = sum(ends.values()) - sum(begins.values())
    at = dict(begins)
    async for batch in log.read(until=ends):
        await own.do(_learn, own.thing, batch, site, name)
        at.update((record.partition, record.offset + 1) for record in batch)
        report(SyncProgress("log", sum(at.values()) - sum(begins.values()), total))
    report(SyncProgress("log", total, total))


def _learn(ledger: Ledger, records: Iterable[Record], site: str, name: str) -> None:
    ledger.add_known(_known(records, f"{site}:".encode(), name))


def _known(records: Iterable[Record], prefix: bytes, name: str) -> Iterator[Known]:
    for record in records:
        if record.key is None or not record.key.startswith(prefix):
            continue
        try:
            change = PageChange.decode(record.value)
        except WireError:  # a dead letter, which does not count
            continue
        yield Known(change.page_key, change.revision, change.op == "delete", change.source == name)


async def _send(courier: Courier, own: OwnThread[Ledger], before: int, todo: int, report: Report) -> None:
    after, done = "", 0
    while wanted := await own.do(own.thing.wanted, after, FETCHED, before):
        after = wanted[-1].page_key
        await courier.deliver(wanted)
        done += len(wanted)
        report(SyncProgress("pages", done, todo))


async def _delete(courier: Courier, own: OwnThread[Ledger], before: int, todo: int, report: Report) -> None:
    after, done = "", todo - await own.do(own.thing.count_gone, before)
    while gone := await own.do(own.thing.gone, after, FETCHED, before):
        after = gone[-1][0]
        await courier.delete([replace(listed, revision=before) for _, listed in gone])
        done += len(gone)
        report(SyncProgress("pages", done, todo))


async def noted_reconcile(
    settings: ConnectorsSettings,
    site: str,
    name: str,
    by: str,
    runs: ConnectorRuns,
    open_log: OpenLog,
    intake: Intake,
    report: Report = lambda _: None,
    *,
    force: bool = False,
) -> Reconciled:
    """Reconcile the connector `name`. `by`: who is noted. Raises: as `reconcile`, and NoSource."""
    async with runs.run(site, name, "reconcile", by) as came, opened(settings, site, name) as source:
        done = await reconcile(source, site, name, open_log, intake, settings.home, report, force=force)
        note(came, done)
        return done


def note(came: ConnectorRunOutcome, done: Reconciled) -> None:
    """Write the outcome of a reconcile into its run's."""
    came.sent, came.deleted, came.left_out = done.sent, done.deleted, done.left_out
    came.failed, came.refused = done.failed, done.refused
