"""Last uses: the hour of a key's last use, and of a connector's last webhook.

    request ─▶ note: in memory, at once ─▶ every FLUSH seconds, the new ones of this hour ─▶ state `last-use`

A request does not wait, and each gateway writes each name at most once an hour. A gateway that dies loses the notes of
its last minute; the next use repeats them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime

import structlog

from pipelines.operate.states import States
from pipelines.runtime.errors import PagewireError
from pipelines.runtime.periodic_task import PeriodicTask
from schemas.access_key import ListedKey
from schemas.connector_run import LastUse

log = structlog.get_logger(__name__)

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
