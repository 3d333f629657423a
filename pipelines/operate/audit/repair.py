"""Repair: corrects the findings of an audit, always from the log.

    finding ─┬─ the page's change is sent through the pipeline again (bulk lane) ─▶ cms.changes
             └─ orphaned chunks are deleted, by id, unless they were written again since
    then the audit is repeated, until it is clean or a repair has no effect

Only the pipeline writes to the index, so all its guards hold, and a crash leaves findings for the next audit. If only
the log can be wrong (it does not know a page or a revision), `force` is needed. An exception is a delete that the log
has lost: it is sent back to the log, because it hides no page that is shown. If too many pages would vanish, the repair
stops and changes nothing: then the log was lost.

Audits and repairs in the background: one gateway runs them, all show them, one per site at a time.

If a gateway dies, the steps of a repair until then stay; the next audit finds the rest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from datetime import datetime
from functools import partial
from typing import Literal

from more_itertools import chunked, split_when
from pydantic import Field

from pipelines.ingest.ports import KnownPages
from pipelines.operate.audit.audit import SETTLE, Audit, AuditProgress, Inventory, Report
from pipelines.operate.audit.index_diff import Winner
from pipelines.operate.audit.report import AuditReport, RepairReport, StoredAudit
from pipelines.operate.site_runs import Changes, RunState, SiteRun, SiteRuns
from pipelines.operate.states import States
from pipelines.runtime.bus import LogScan, Producer
from pipelines.runtime.errors import Permanent
from pipelines.runtime.record import Record, in_lane
from schemas.base import MAX_REVISION, Wire, WireError
from schemas.page import PageChange
from schemas.topics import CHANGES

ROUNDS = 3  # a repair may uncover findings for the next one, such as old chunks of a page that is back
PATIENCE = 60.0  # seconds without a further page that agrees: no worker runs
BATCH = 500  # pages repaired together
GAP = 1_000  # records of the log; closer ones are read together
VANISHING = 0.10  # share of the pages shown, ...
FEW = 20  # ... and number, up to which a repair may delete pages
SWAPS = 3  # audits of a live index that was replaced meanwhile

# Of a site: the index of this name, by default the live one; None when the site never had one.
InventoryOf = Callable[[str, str | None], Awaitable[Inventory | None]]
OpenLogOf = Callable[[str], AbstractAsyncContextManager[LogScan]]  # of a site


class LogLost(Permanent):
    """The log misses many pages that the index shows: probably the log is wrong."""

    code = "log-lost"


class AuditRunning(Permanent):
    """One audit of a site at a time."""

    code = "audit-running"


class Auditor:
    """Audits and repairs the sites. One per process; one audit per site at a time."""

    def __init__(self, open_log: OpenLogOf, inventory_of: InventoryOf, receipts: KnownPages, sender: Producer) -> None:
        """`open_log`: opens the change log for one site."""
        self._open_log = open_log
        self._inventory_of = inventory_of
        self._receipts = receipts
        self._sender = sender
        self._busy: set[str] = set()

    async def audit(
        self, site: str, *, index: str | None = None, settle: float = SETTLE, report: Report = lambda _: None
    ) -> AuditReport:
        """Compare an index (default: the live one) with the log.

        Raises:
            AuditRunning: another one of this site runs.
            Permanent: no such index. Retryable: a service does not answer.
        """
        with self._alone(site):
            for _ in range(SWAPS):
                inventory = await self._inventory_of(site, index)
                async with self._opened(site, inventory, report) as one:
                    found = await one.run(settle)
                # After a promotion, the old index is no longer kept up to date.
                if found.clean or index is not None or await self._is_live(site, inventory):
                    break
            return found

    async def repair(
        self, site: str, *, force: bool = False, settle: float = SETTLE, report: Report = lambda _: None
    ) -> RepairReport:
        """Audit the live index, repair it, and audit again.

        Args:
            force: also delete pages that the log does not know, and replace newer revisions by the log's.

        Raises:
            LogLost: too many pages would vanish; nothing was changed.
            AuditRunning, Retryable: as `audit`; earlier steps of the repair stay.
        """
        with self._alone(site):
            found: list[AuditReport] = []
            sent = deleted = 0
            for number in range(ROUNDS + 1):
                inventory = await self._inventory_of(site, None)
                async with self._opened(site, inventory, report) as one:
                    found.append(await one.run(settle, patience=PATIENCE if number else 0.0))
                    if number == ROUNDS or found[-1].clean or _in_vain(found):
                        break
                    if not force:
                        await _refuse_if_log_is_lost(one)
                    cleared = await _clear(one, force)
                    resent = await _send_again(one, self._sender, force)
                if not cleared and not resent:
                    break
                sent, deleted = sent + resent, deleted + cleared
            return RepairReport(before=found[0], sent=sent, deleted=deleted, after=found[-1])

    @contextmanager
    def _alone(self, site: str) -> Iterator[None]:
        if site in self._busy:
            raise AuditRunning(f"an audit of site {site} is at work already; try again when it is done")
        self._busy.add(site)
        try:
            yield
        finally:
            self._busy.discard(site)

    def _opened(self, site: str, inventory: Inventory | None, report: Report) -> Audit:
        return Audit(site, inventory, partial(self._open_log, site), self._receipts, report)

    async def _is_live(self, site: str, inventory: Inventory | None) -> bool:
        live = await self._inventory_of(site, None)
        return (live and live.name) == (inventory and inventory.name)


def _in_vain(found: Sequence[AuditReport]) -> bool:
    """Whether two rounds in a row had no effect; the first audit is no round.

    One round proves nothing: for a minute Elasticsearch remembers a document that was deleted by hand, and refuses a
    new one as older (`index.gc_deletes`).
    """
    left = [sum(report.counts.values()) for report in found[-3:]]
    return len(left) == 3 and left[2] >= left[1] >= left[0]


async def _refuse_if_log_is_lost(audit: Audit) -> None:
    vanishing, shown = await audit.ask(audit.drift.would_vanish)
    if vanishing > FEW and vanishing > VANISHING * shown:
        raise LogLost(
            f"{vanishing:,} of the {shown:,} pages shown are deleted in or unknown to the change log, so it may be the "
            f"log that is lost (is topic {CHANGES.name} complete?); nothing was changed. `--force` takes them away"
        )


async def _clear(audit: Audit, force: bool) -> int:
    """Delete orphans; returns how many documents."""
    deleted, after = 0, ""
    while pages := await audit.ask(audit.drift.to_clear, after, BATCH, force=force):
        after = pages[-1][0]
        documents = [document for _, strays in pages for document in strays]
        assert audit.index is not None, "what is deleted was read from an index"
        for some in chunked(documents, BATCH):
            await audit.index.delete(some)
        deleted += len(documents)
    return deleted


async def _send_again(audit: Audit, sender: Producer, force: bool) -> int:
    """Send the changes of damaged pages again; returns how many."""
    sent, after = 0, (-1, -1)
    while winners := await audit.ask(audit.drift.to_send, after, BATCH, force=force):
        after = (winners[-1].partition, winners[-1].offset)
        for stretch in stretches(winners):
            wanted = {winner.offset: winner for winner in stretch}
            partition, first, last = stretch[0].partition, stretch[0].offset, stretch[-1].offset
            async for batch in audit.changes.read(since={partition: first}, until={partition: last + 1}):
                again = [(record, wanted[record.offset]) for record in batch if record.offset in wanted]
                sent += sum(await asyncio.gather(*(_send(sender, record, winner) for record, winner in again)))
    return sent


def stretches(winners: Sequence[Winner]) -> Iterator[list[Winner]]:
    """Winners in the log's order, grouped by partition and with gaps of at most `GAP` records."""
    return split_when(winners, lambda one, two: one.partition != two.partition or two.offset - one.offset > GAP)


async def _send(sender: Producer, record: Record, winner: Winner) -> bool:
    """Send a record again; False if another one has its offset now (the topic was created anew)."""
    value = record.value
    try:
        change = PageChange.decode(value)
    except WireError:
        return False
    if (change.page_key, change.revision) != (winner.page_key, winner.revision):
        return False
    if winner.deleted is not None:
        value = change.model_copy(update={"op": "delete", "page": None, "revision": winner.deleted}).encode()
    elif winner.beaten is not None:
        # A higher revision than the one to replace: versions in the index never decrease.
        value = change.model_copy(update={"revision": min(winner.beaten + 1, MAX_REVISION)}).encode()
    await sender.send_bytes(CHANGES, record.key, value, in_lane(record.headers, "bulk"))
    return True


class AuditOrder(Wire):
    """The body of `POST .../audit-run`."""

    repair: bool = Field(default=False, description="Also put right what is found: this changes the index and the log.")
    force: bool = Field(
        default=False,
        description="With `repair`: also take away what the log does not know, and put what it has over what is newer.",
    )


class AuditRun(AuditOrder, SiteRun):
    """The running audit or repair of a site, or the last one."""

    step: Literal["log", "index", "settling"] | None = Field(default=None, description="What it is at: done of total.")
    done: int = 0
    total: int = 0
    found: StoredAudit | None = Field(default=None, description="What was found first.")
    sent: int = Field(default=0, description="Changes that the repair sent through the pipeline again.")
    deleted: int = Field(default=0, description="Documents that the repair deleted from the index.")
    left: StoredAudit | None = Field(default=None, description="What was found after the repair.")


class LastRun(Wire):
    """The answer of `GET .../audit-run`."""

    state: RunState | None = Field(description="Null: there was none yet. `broken-off`: its gateway died.")
    run: AuditRun | None


class AuditRuns:
    """One per gateway; close it before the servers' clients. `now`: the gateways' common time."""

    def __init__(self, states: States, audits: Auditor, now: Callable[[], datetime], settle: float = SETTLE) -> None:
        self._runs = SiteRuns(states, "audit-run", AuditRun, now, AuditRunning)
        self._audits = audits
        self._settle = settle
        self.last = self._runs.last
        self.aclose = self._runs.aclose

    async def start(self, site: str, order: AuditOrder, by: str) -> AuditRun:
        """Begin; returns at once. Raises: AuditRunning: one runs, here or at another gateway. Retryable."""
        began_at, until = self._runs.claim()
        run = AuditRun(**dict(order), site=site, by=by, began_at=began_at, until=until)

        async def work(note: Callable[[Changes], None]) -> Changes:
            def report(progress: AuditProgress) -> None:
                note({"step": progress.step, "done": progress.done, "total": progress.total})

            if not order.repair:
                return {"found": (await self._audits.audit(site, settle=self._settle, report=report)).kept}
            done = await self._audits.repair(site, force=order.force, settle=self._settle, report=report)
            found = {"found": done.before.kept, "left": done.after.kept}
            return {**found, "sent": done.sent, "deleted": done.deleted}

        return await self._runs.start(run, work)
