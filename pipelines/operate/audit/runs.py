"""Audits and repairs in the background: one gateway runs them, all show them, one per site at a time.

    start ─▶ state `audit-run` of the site ◀── look
                 ▲ claimed by replacing the state, valid for LEASE, renewed every BEAT
    task ────────┘ audit or repair: its progress, at its end the report

If a gateway dies, its claim ends with the lease; the run is shown as broken off, and another one may begin. The steps
of a repair until then stay; the next audit finds the rest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Literal, Self

import structlog
from pydantic import AwareDatetime, Field

from pipelines.operate.audit.audit import SETTLE, AuditProgress, Report
from pipelines.operate.audit.index_diff import Kind
from pipelines.operate.audit.repair import Auditor, AuditRunning
from pipelines.operate.audit.report import AuditReport, Finding
from pipelines.operate.states import State, States
from pipelines.runtime.errors import PagewireError, Retryable
from schemas.base import SiteId, Wire

log = structlog.get_logger(__name__)

LEASE = timedelta(seconds=30)
BEAT = 5.0  # seconds between two writes of the progress
END_TRIES = 60  # to write the end, a beat apart: five minutes
LAST_NOTE = 5.0  # seconds for the last write when the gateway ends

RunState = Literal["running", "broken-off", "done", "failed"]


class AuditOrder(Wire):
    """The body of `POST .../audit-run`."""

    repair: bool = Field(default=False, description="Also put right what is found: this changes the index and the log.")
    force: bool = Field(
        default=False,
        description="With `repair`: also take away what the log does not know, and put what it has over what is newer.",
    )


class StoredAudit(Wire):
    """The stored result of an audit: an AuditReport without the site."""

    index: str | None = Field(description="The index that was read; null: the site has none yet.")
    pages: int
    deleted: int
    chunks: int
    counts: dict[Kind, int] = Field(description="Pages by kind of finding, complete; empty: all is as it should be.")
    findings: tuple[Finding, ...] = Field(description="The first ones.")
    failed: int = Field(description="Pages whose last change is a dead letter: not drift.")
    unreadable: int
    seconds: float

    @classmethod
    def of(cls, report: AuditReport) -> Self:
        return cls(**{name: getattr(report, name) for name in cls.model_fields if name != "v"})


class AuditRun(AuditOrder):
    """The running audit or repair of a site, or the last one."""

    site: SiteId
    by: str = Field(description="Name of the key that began it.")
    began_at: AwareDatetime
    until: AwareDatetime = Field(description="When it counts as broken off, unless it says something before.")
    ended_at: AwareDatetime | None = None
    step: Literal["log", "index", "settling"] | None = Field(default=None, description="What it is at: done of total.")
    done: int = 0
    total: int = 0
    code: str = Field(default="", description="Why it failed, as in problem documents.")
    error: str = ""
    found: StoredAudit | None = Field(default=None, description="What was found first.")
    sent: int = Field(default=0, description="Changes that the repair sent through the pipeline again.")
    deleted: int = Field(default=0, description="Documents that the repair deleted from the index.")
    left: StoredAudit | None = Field(default=None, description="What was found after the repair.")

    def state(self, now: datetime) -> RunState:
        if self.ended_at is not None:
            return "failed" if self.code else "done"
        return "running" if now < self.until else "broken-off"


class LastRun(Wire):
    """The answer of `GET .../audit-run`."""

    state: RunState | None = Field(description="Null: there was none yet. `broken-off`: its gateway died.")
    run: AuditRun | None


class AuditRuns:
    """One per gateway; close it before the servers' clients. `now`: the gateways' common time."""

    def __init__(self, states: States, audits: Auditor, now: Callable[[], datetime], settle: float = SETTLE) -> None:
        self._states = states
        self._audits = audits
        self._now = now
        self._settle = settle
        self._tasks: set[asyncio.Task[None]] = set()

    async def last(self, site: str) -> AuditRun | None:
        """The last run; None: there was none. Raises: Retryable."""
        found = await self._states.get("audit-run", site)
        return AuditRun.stored(found.value) if found else None

    async def start(self, site: str, order: AuditOrder, by: str) -> AuditRun:
        """Begin; returns at once.

        Raises:
            AuditRunning: one runs, here or at another gateway. Retryable.
        """
        before = await self._states.get("audit-run", site)
        now = self._now()
        if before is not None and AuditRun.stored(before.value).state(now) == "running":
            raise AuditRunning(f"an audit of site {site} is at work already; try again when it is done")
        run = AuditRun(**dict(order), site=site, by=by, began_at=now, until=now + LEASE)
        claim = await self._states.replace("audit-run", site, run, before)
        if claim is None:
            raise AuditRunning(f"an audit of site {site} has just been begun elsewhere")
        task = asyncio.create_task(self._work(run, claim), name=f"audit {site}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return run

    async def aclose(self) -> None:
        """Stop the running audits."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _work(self, run: AuditRun, claim: State) -> None:
        noting = _Noting(self._states, self._now, run, claim)
        working = asyncio.create_task(self._report(noting.run, noting.progressed))
        beating = asyncio.create_task(noting.beat())
        try:
            await asyncio.wait({working, beating}, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():  # the claim is lost, or could not be renewed for too long
                return
            await noting.end(_outcome(working))
        except asyncio.CancelledError:
            with suppress(PagewireError, TimeoutError):
                async with asyncio.timeout(LAST_NOTE):
                    await noting.end({"code": "stopped", "error": "the gateway that did it has ended"})
            raise
        finally:
            for task in (working, beating):
                task.cancel()
            await asyncio.gather(working, beating, return_exceptions=True)

    async def _report(self, run: AuditRun, report: Report) -> dict[str, object]:
        if not run.repair:
            return {"found": StoredAudit.of(await self._audits.audit(run.site, settle=self._settle, report=report))}
        done = await self._audits.repair(run.site, force=run.force, settle=self._settle, report=report)
        return {
            "found": StoredAudit.of(done.before),
            "sent": done.sent,
            "deleted": done.deleted,
            "left": StoredAudit.of(done.after),
        }


class _Noting:
    """Writes the state of one run, which renews its claim."""

    def __init__(self, states: States, now: Callable[[], datetime], run: AuditRun, claim: State) -> None:
        self._states = states
        self._now = now
        self._claim = claim
        self._writing = asyncio.Lock()
        self.run = run

    def progressed(self, progress: AuditProgress) -> None:
        update = {"step": progress.step, "done": progress.done, "total": progress.total}
        self.run = self.run.model_copy(update=update)

    async def beat(self) -> None:
        """Renew until the claim is lost."""
        while True:
            await asyncio.sleep(BEAT)
            try:
                if not await self._note({"until": self._now() + LEASE}):
                    return
            except Retryable as err:
                log.warning("how far an audit is cannot be noted", site=self.run.site, error=str(err))
                if self._now() > self.run.until:
                    return

    async def end(self, outcome: dict[str, object]) -> None:
        """Write the end, with retries; after minutes without success the run is shown as broken off."""
        for _ in range(END_TRIES):
            try:
                if not await self._note(outcome | {"ended_at": self._now()}):
                    log.warning("an audit's end is not noted: another has begun", site=self.run.site)
                return
            except Retryable as err:
                log.warning("an audit's end cannot be noted", site=self.run.site, error=str(err))
                await asyncio.sleep(BEAT)

    async def _note(self, update: dict[str, object]) -> bool:
        """False: another run has the claim."""
        async with self._writing:
            noted = self.run.model_copy(update=update)
            claim = await self._states.replace("audit-run", noted.site, noted, self._claim)
            if claim is None:  # possibly our own last write, whose answer was lost
                now = await self._states.get("audit-run", noted.site)
                if now is None or AuditRun.stored(now.value).began_at != noted.began_at:
                    return False
                claim = await self._states.replace("audit-run", noted.site, noted, now)
            if claim is None:
                return False
            self.run, self._claim = noted, claim
            return True


def _outcome(working: asyncio.Task[dict[str, object]]) -> dict[str, object]:
    error = working.exception()
    if error is None:
        return working.result()
    if isinstance(error, PagewireError):
        return {"code": error.code, "error": str(error)}
    log.error("an audit has failed", exc_info=error)
    return {"code": "internal", "error": "something nobody foresaw; the gateway's log knows more"}
