"""Retention: what visitors said is deleted after the days that their site sets, the audit log after its own.

What was changed while the system runs counts at the next sweep, a shorter time an hour later (site_privacy.py).

A job of our own rather than Elasticsearch's lifecycle: that deletes whole indexes, all sites' together, and needs
modules that the local engine does not have. Every log worker sweeps; what one has deleted the others do not find.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from pipelines.query.live.live_texts import TextStore
from pipelines.query.live.site_privacy import PRIVACY, deleted_by, filed_rules
from pipelines.query.log.ports import Expiring
from pipelines.runtime.errors import PagewireError
from pipelines.runtime.settings import Site

logger = structlog.get_logger(__name__)

PAUSE = 3_600.0  # seconds between sweeps: retention is counted in days


@dataclass(eq=False)
class Retention:
    """Deletes what is too old. One per worker.

    Args:
        texts: where it stands when a site keeps something else by now; without it nothing is deleted.
        now: what time it is for Elasticsearch: a worker whose clock is wrong must not delete anything early.
    """

    sites: Mapping[str, Site]
    outcomes: Expiring
    conversations: Expiring
    runs: Expiring
    handovers: Expiring
    now: Callable[[], Awaitable[datetime]]
    expire_audit_log: Callable[[datetime], Awaitable[object]]
    audit_log_days: int
    texts: TextStore

    def __post_init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="retention")

    async def aclose(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def sweep(self) -> None:
        """Delete what is too old now. Raises: Retryable."""
        now = await self.now()
        said, talked = await self._limits(now)
        gone = {
            "outcomes": await self.outcomes.expire(said),
            "conversations": await self.conversations.expire(talked),
            # Cases may be visitors' questions, too, and a run has their words.
            "evaluations": await self.runs.expire(said),
            "handovers": await self.handovers.expire(talked),
        }
        for site in sorted({site for counts in gone.values() for site in counts}):
            logger.info("expired", site=site, **{what: counts.get(site, 0) for what, counts in gone.items()})
        if acts := await self.expire_audit_log(now - timedelta(days=self.audit_log_days)):
            logger.info("expired", audit_log=acts)

    async def _limits(self, now: datetime) -> tuple[Mapping[str, datetime], Mapping[str, datetime]]:
        """Of each site, before when outcomes and conversations are too old."""
        said, talked = {}, {}
        changed = await self.texts.changed("privacy", PRIVACY)
        for name, site in self.sites.items():
            versions = await self.texts.versions(name, "privacy", PRIVACY) if name in changed else ()
            kept = deleted_by(versions, filed_rules(site), now)
            if kept is None:
                logger.warning("what a site keeps cannot be read here: nothing of it is deleted", site=name)
                continue
            said[name] = now - timedelta(days=kept.outcomes)
            talked[name] = now - timedelta(days=kept.conversations)
        return said, talked

    async def _run(self) -> None:
        while True:
            try:
                await self.sweep()
            except PagewireError as err:
                logger.warning("retention did not get through, and tries again", code=err.code, error=str(err))
            await asyncio.sleep(PAUSE)
