"""Audits and repairs in the background: one gateway runs them, all show them, one per site at a time.

If a gateway dies, the steps of a repair until then stay; the next audit finds the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Literal

from pydantic import Field

from pipelines.operate.audit.audit import SETTLE, AuditProgress
from pipelines.operate.audit.repair import Auditor, AuditRunning
from pipelines.operate.audit.report import StoredAudit
from pipelines.operate.site_runs import Changes, RunState, SiteRun, SiteRuns
from pipelines.operate.states import States
from schemas.base import Wire


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
        """Begin; returns at once.

        Raises:
            AuditRunning: one runs, here or at another gateway. Retryable.
        """
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
