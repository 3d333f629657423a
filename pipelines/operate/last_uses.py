"""Last uses: when a key was used last, and when a connector's webhook came last, to the hour.

    request ─▶ note: in memory, at once ─▶ every FLUSH seconds, what is new of this hour ─▶ state `last-use`

A request waits for nothing, and each name is written once an hour by each gateway at most. A gateway that dies forgets
what it noted in its last minute; the next use says it again.
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
FLUSH_TIMEOUT = 10.0  # seconds for what is open, at most


def of_key(name: str) -> str:
    """What a key is called here."""
    return f"key {name}"


def of_connector(site: str, name: str) -> str:
    """What a connector is called here."""
    return f"connector {site}/{name}"


def used(key: ListedKey, uses: Mapping[str, datetime]) -> ListedKey:
    """The key with its last use."""
    return key.model_copy(update={"last_used_at": uses.get(of_key(key.name))})


class LastUses:
    """One per process. `now`: the time that all gateways go by."""

    def __init__(self, states: States, now: Callable[[], datetime]) -> None:
        self._states = states
        self._now = now
        self._noted: dict[str, datetime] = {}  # as many as there are keys and connectors
        self._open: dict[str, datetime] = {}
        self._flushing = PeriodicTask("last uses", FLUSH, self.flush)

    def note(self, name: str) -> None:
        """It is used now. Waits for nothing."""
        hour = self._now().replace(minute=0, second=0, microsecond=0)
        if self._noted.get(name) != hour:
            self._noted[name] = self._open[name] = hour

    async def known(self) -> Mapping[str, datetime]:
        """By name; what was noted in the last minute may lack. Raises: Retryable."""
        return {state.name: LastUse.stored(state.value).at for state in await self._states.all("last-use")}

    async def flush(self) -> None:
        """Write what is new. What cannot be written stays for the next time."""
        try:
            async with asyncio.timeout(FLUSH_TIMEOUT):
                for name, at in list(self._open.items()):
                    before = await self._states.get("last-use", name)
                    if before is None or LastUse.stored(before.value).at < at:
                        # Whoever was faster has said the same hour, or a later one.
                        await self._states.replace("last-use", name, LastUse(at=at), before)
                    if self._open.get(name) == at:
                        del self._open[name]
        except (PagewireError, TimeoutError) as err:
            log.warning("last uses cannot be written", open=len(self._open), error=repr(err))

    async def start(self) -> None:
        """Write from time to time."""
        await self._flushing.start(at_once=False)

    async def aclose(self) -> None:
        """Write what is left."""
        await self._flushing.aclose()
        await self.flush()
