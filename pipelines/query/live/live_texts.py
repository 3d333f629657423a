"""Texts that were changed while the system runs: known to every worker and gateway within seconds.

    change (text_changes.py) ─▶ store ◀── look, every REFRESH seconds ── SitePrompts ◀── every answer, without waiting
                                                                      ├─ SitePrivacy ◀── every question that is logged
                                                                      └─ SiteTuning ◀── every question that comes in

Where the store is away, what was known last is said on: an outage must not change what a site says. A process that
starts meanwhile says what the files say until it has seen the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence, Set
from typing import Protocol

import structlog

from pipelines.runtime.errors import PagewireError
from pipelines.runtime.periodic_task import PeriodicTask
from schemas.text_version import TextKind, TextVersion

log = structlog.get_logger(__name__)

REFRESH = 5.0  # seconds between two looks: what is changed is said everywhere within twice as many
LOOK_TIMEOUT = 5.0  # seconds for one look


class TextStore(Protocol):
    """Where versions are kept (adapters.elastic.texts). All raise Retryable."""

    async def state(self) -> str:
        """Another one whenever a version was added; costs next to nothing."""

    async def live(self, site: str | None = None) -> Sequence[TextVersion]:
        """The newest version of each text that is no candidate; of all sites, or of one."""

    async def changed(self, kind: TextKind, name: str) -> Set[str]:
        """The sites that have versions of it."""

    async def versions(self, site: str, kind: TextKind, name: str) -> Sequence[TextVersion]:
        """The newest first."""

    async def add(self, version: TextVersion) -> bool:
        """False: there is one of this number already."""


# Receives all live versions: SitePrompts.take, SitePrivacy.take, SiteTuning.take. It passes over those of other kinds.
Taker = Callable[[Sequence[TextVersion]], None]


class LiveTexts:
    """Hands the live versions to `takers`. One for each process or stage."""

    def __init__(self, store: TextStore, *takers: Taker) -> None:
        self._store = store
        self._takers = takers
        self._state: str | None = None
        self._away = False
        self._keeping = PeriodicTask("live texts", REFRESH, self.look)

    @property
    def seen(self) -> bool:
        """Whether the store was ever read: until then it is unknown here what was changed."""
        return self._state is not None

    async def look(self) -> bool:
        """Look once; whether there was an answer."""
        try:
            async with asyncio.timeout(LOOK_TIMEOUT):
                # The state first: what is added between the two is read, and the next look reads it again.
                state = await self._store.state()
                if state != self._state:
                    live = await self._store.live()
                    for taker in self._takers:
                        await asyncio.to_thread(taker, live)
                    self._state = state
        except (PagewireError, TimeoutError) as err:
            if not self._away:
                log.warning("changed texts cannot be read; those known last are said on", error=repr(err))
            self._away = True
            return False
        self._away = False
        return True

    async def start(self) -> None:
        """Look, and look again from time to time. Whatever is kept there, no process fails to start for it."""
        await self._keeping.start()

    async def aclose(self) -> None:
        await self._keeping.aclose()
