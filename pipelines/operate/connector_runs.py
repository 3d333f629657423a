"""Connectors' runs: stored at their begin and end, so that the console can show them.

    import, reconcile, watch ─▶ began ─▶ ... ─▶ ended, or failed ─▶ state `connector-run` ◀── console

The run does not depend on the store: if the write fails, only a log line remains.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime

import structlog

from pipelines.operate.states import States
from pipelines.runtime.errors import PagewireError
from schemas.connector_run import ConnectorRun, RunKind

log = structlog.get_logger(__name__)

NOTE_TIMEOUT = 3.0  # seconds that a run waits for the store


@dataclass
class ConnectorRunOutcome:
    """The outcome of a run; the connector sets it before the end."""

    sent: int = 0
    deleted: int = 0
    left_out: int = 0
    failed: int = 0
    refused: bool = False


class ConnectorRuns:
    """One per process. `now`: the gateways' common time."""

    def __init__(self, states: States, now: Callable[[], datetime]) -> None:
        self._states = states
        self._now = now

    async def last(self) -> Mapping[tuple[str, str], ConnectorRun]:
        """The last run of each connector, by site and name. Raises: Retryable."""
        kept = [ConnectorRun.stored(state.value) for state in await self._states.all("connector-run")]
        return {(run.site, run.connector): run for run in kept}

    @asynccontextmanager
    async def run(self, site: str, connector: str, what: RunKind, by: str) -> AsyncIterator[ConnectorRunOutcome]:
        """Record the run inside the block. Its errors are raised unchanged."""
        run = ConnectorRun(site=site, connector=connector, what=what, by=by, began_at=self._now())
        await self._note(run)
        came, code, error = ConnectorRunOutcome(), "", ""
        try:
            yield came
        except asyncio.CancelledError:
            code = "" if what == "watch" else "stopped"  # a watch has no other end
            raise
        except Exception as err:
            code, error = str(getattr(err, "code", "internal")), str(err)
            raise
        finally:
            await self._note(
                run.model_copy(update={**vars(came), "ended_at": self._now(), "code": code, "error": error})
            )

    async def _note(self, run: ConnectorRun) -> None:
        try:
            async with asyncio.timeout(NOTE_TIMEOUT):
                await self._states.put("connector-run", f"{run.site}/{run.connector}", run)
        except (PagewireError, TimeoutError) as err:
            log.warning("a connector's run is not noted", site=run.site, connector=run.connector, error=repr(err))
