"""States: small values that all processes share while the system runs, each with a kind and a name.

chat            a site           whether its chat is switched off
connector-run   site/connector   its last run, and the outcome
last-use        a key            time of its last use
audit-run       a site           its last audit, with progress and owner
evaluation-run  a site           its last evaluation, likewise

Connectors' runs: stored at their begin and end, so that the console can show them.

    import, reconcile, watch ─▶ began ─▶ ... ─▶ ended, or failed ─▶ state `connector-run` ◀── console

The run does not depend on the store: if the write fails, only a log line remains.

Last uses: the hour of a key's last use, and of a connector's last webhook.

    request ─▶ note: in memory, at once ─▶ every FLUSH seconds, the new ones of this hour ─▶ state `last-use`

A request does not wait, and each gateway writes each name at most once an hour. A gateway that dies loses the notes of
its last minute; the next use repeats them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol

import structlog

from pipelines.runtime.errors import PagewireError
from pipelines.runtime.periodic_task import PeriodicTask
from schemas.access_key import ListedKey
from schemas.base import Wire
from schemas.connector_run import ConnectorRun, LastUse, RunKind

Kind = Literal["chat", "connector-run", "last-use", "audit-run", "evaluation-run"]


@dataclass(frozen=True)
class State:
    """A stored value and its version."""

    name: str
    value: Mapping[str, Any]
    version: tuple[int, int]


class States(Protocol):
    """Stores states (adapters.elastic.system_index). All methods raise Retryable."""

    async def all(self, kind: Kind) -> Sequence[State]:
        """All states of a kind, at most a second old."""

    async def get(self, kind: Kind, name: str) -> State | None:
        """The current state."""

    async def put(self, kind: Kind, name: str, value: Wire) -> None:
        """Replace the state. `all` shows it at once."""

    async def replace(self, kind: Kind, name: str, value: Wire, before: State | None) -> State | None:
        """Replace the version that was read (None: none). Returns None if the stored version is another one."""


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


FLUSH = 60.0  # seconds
FLUSH_TIMEOUT = 10.0  # seconds for all open notes


def of_key(name: str) -> str:
    """The name of a key in the notes."""
    return f"key {name}"


def of_connector(site: str, name: str) -> str:
    """The name of a connector in the notes."""
    return f"connector {site}/{name}"


def used(key: ListedKey, uses: Mapping[str, datetime]) -> ListedKey:
    """The key with its last use."""
    return key.model_copy(update={"last_used_at": uses.get(of_key(key.name))})


class LastUses:
    """One per process. `now`: the gateways' common time."""

    def __init__(self, states: States, now: Callable[[], datetime]) -> None:
        self._states = states
        self._now = now
        self._noted: dict[str, datetime] = {}  # as many as there are keys and connectors
        self._open: dict[str, datetime] = {}
        self._flushing = PeriodicTask("last uses", FLUSH, self.flush)

    def note(self, name: str) -> None:
        """Note a use now, in memory."""
        hour = self._now().replace(minute=0, second=0, microsecond=0)
        if self._noted.get(name) != hour:
            self._noted[name] = self._open[name] = hour

    async def known(self) -> Mapping[str, datetime]:
        """Last uses by name; those of the last minute may be missing. Raises: Retryable."""
        return {state.name: LastUse.stored(state.value).at for state in await self._states.all("last-use")}

    async def flush(self) -> None:
        """Write new notes; after an error they stay for the next call."""
        try:
            async with asyncio.timeout(FLUSH_TIMEOUT):
                for name, at in list(self._open.items()):
                    before = await self._states.get("last-use", name)
                    if before is None or LastUse.stored(before.value).at < at:
                        # On a conflict the stored hour is the same or a later one.
                        await self._states.replace("last-use", name, LastUse(at=at), before)
                    if self._open.get(name) == at:
                        del self._open[name]
        except (PagewireError, TimeoutError) as err:
            log.warning("last uses cannot be written", open=len(self._open), error=repr(err))

    async def start(self) -> None:
        """Write from time to time."""
        await self._flushing.start(at_once=False)

    async def aclose(self) -> None:
        """Write the remaining notes."""
        await self._flushing.aclose()
        await self.flush()
