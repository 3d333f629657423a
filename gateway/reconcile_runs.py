"""Reconciles that a gateway runs in the background: `pagewire reconcile` without a shell.

start ─▶ what the connector lists, against the change log ─▶ intake ─▶ state `connector-run`

A reconcile that dies with its gateway is continued by the next one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial

import structlog

from connectors.cms.reconcile import noted_reconcile
from connectors.cms.settings import ConnectorsSettings, PushConnector
from connectors.cms.sources import NoSource, configured
from connectors.cms.sync import AlreadyRunning
from pipelines.ingest.accept import Intake
from pipelines.operate.states import ConnectorRuns
from pipelines.runtime.bus import LogScan
from pipelines.runtime.errors import PagewireError

log = structlog.get_logger(__name__)


class ReconcileRuns:
    """One per gateway; close it before the servers' clients. `changes_of`: opens a site's change log."""

    def __init__(
        self,
        settings: ConnectorsSettings,
        changes_of: Callable[[str], AbstractAsyncContextManager[LogScan]],
        intake: Intake,
        runs: ConnectorRuns,
    ) -> None:
        self._settings = settings
        self._changes_of = changes_of
        self._intake = intake
        self._runs = runs
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}

    def check(self, site: str, connector: str) -> None:
        """Raises: UnknownSite. NoSource: there is no such connector, or it only pushes."""
        if isinstance(configured(self._settings, site, connector), PushConnector):
            raise NoSource(f"connector {connector!r} of site {site} is of the kind push: it cannot be asked")

    async def start(self, site: str, connector: str, by: str) -> None:
        """Start; returns at once. Raises: UnknownSite, NoSource. AlreadyRunning."""
        self.check(site, connector)
        place = (site, connector)
        if place in self._tasks:
            raise AlreadyRunning(f"a reconcile of {connector!r} of site {site} is at work")
        task = self._tasks[place] = asyncio.create_task(self._run(site, connector, by), name=f"reconcile {place}")
        task.add_done_callback(lambda _: self._tasks.pop(place, None))

    async def aclose(self) -> None:
        """Stop running reconciles."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, site: str, connector: str, by: str) -> None:
        said = log.bind(site=site, connector=connector)
        opens = partial(self._changes_of, site)
        try:
            done = await noted_reconcile(self._settings, site, connector, by, self._runs, opens, self._intake)
        except PagewireError as err:
            said.warning("a reconcile did not come to its end", reason=str(err))
        except Exception:
            log.exception("a reconcile did not come to its end", site=site, connector=connector)
        else:
            said.info("reconciled", sent=done.sent, deleted=done.deleted, failed=done.failed, refused=done.refused)
