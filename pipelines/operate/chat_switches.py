"""Switches a site's chat off and on while the system runs; every gateway and worker follows within seconds.

    throw ─▶ store ◀── look, every REFRESH seconds ── known ◀── every question, without waiting
                                                        └─▶ the event that ends running answers

While the store is away, the last known state stays. A process that starts in that time takes the chat for switched on
until the store is back; without the store it finds no pages to answer from.

Kill switches in a backup: a chat that was switched off stays off after a restore.

If there is a switch already, the newer one stays.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from weakref import WeakValueDictionary

import structlog
from pydantic import ValidationError

from pipelines.operate.backup.manifest import BackupDocument, PutBack
from pipelines.operate.states import State, States
from pipelines.runtime.errors import PagewireError, Permanent, Retryable
from pipelines.runtime.periodic_task import PeriodicTask
from schemas.base import problems
from schemas.chat_switch import ChatState, ChatSwitch

log = structlog.get_logger(__name__)

REFRESH = 4.0  # seconds between two looks; with LOOK_TIMEOUT less than the ten in which all follow
LOOK_TIMEOUT = 4.0  # seconds for one look


class ChatOffInFile(Permanent):
    """`chat.enabled` of pagewire.yaml is false: the chat is switched on by changing it there."""

    code = "chat-off-in-file"


class ChatSwitches:
    """One per process.

    Args:
        enabled: `chat.enabled` of pagewire.yaml, by site. now: the gateways' common time.
    """

    def __init__(self, store: States, enabled: Mapping[str, bool], now: Callable[[], datetime]) -> None:
        self._store = store
        self._enabled = enabled
        self._now = now
        self._known: dict[str, ChatSwitch] = {}
        self._failed = 0  # looks in a row
        # Only of sites with running answers, which hold the events: there may be thousands of sites.
        self._off: WeakValueDictionary[str, asyncio.Event] = WeakValueDictionary()
        keeping = PeriodicTask("chat switches", REFRESH, self.look)
        self.start, self.aclose = keeping.start, keeping.aclose  # looks now, and again from time to time

    def off(self, site: str) -> bool:
        """Whether the site's chat is switched off, as far as this process knows."""
        return not self.state(site).on

    def went_off(self, site: str) -> asyncio.Event:
        """An event that is set while the chat is switched off by the switch; the file does not change."""
        event = self._off.get(site)
        if event is None:
            event = self._off[site] = asyncio.Event()
            if (switch := self._known.get(site)) is not None and not switch.on:
                event.set()
        return event

    def state(self, site: str) -> ChatState:
        """The state as far as this process knows it, without waiting."""
        switch = self._known.get(site)
        thrown = {"changed_at": switch.changed_at, "changed_by": switch.changed_by} if switch else {}
        if not self._enabled.get(site, True):
            return ChatState.model_validate({"site": site, "on": False, "by": "file"} | thrown)
        said = {"on": switch.on, "by": "switch"} if switch else {"on": True, "by": "default"}
        return ChatState.model_validate({"site": site} | said | thrown)

    async def throw(self, site: str, *, on: bool, by: str) -> ChatState:
        """Switch the chat of a site; this process follows at once.

        Raises: ChatOffInFile: it cannot be switched on. Retryable: probably nothing was changed.
        """
        if on and not self._enabled.get(site, True):
            raise ChatOffInFile(f"sites.{site}.chat.enabled is false in pagewire.yaml: change it there and start anew")
        switch = ChatSwitch(site=site, on=on, changed_at=self._now(), changed_by=by)
        await self._store.put("chat", site, switch)
        self._take([switch])
        return self.state(site)

    async def look(self) -> bool:
        """Read the switches once; returns whether the store answered. Without an answer the known ones stay."""
        try:
            async with asyncio.timeout(LOOK_TIMEOUT):
                self._take(_read(await self._store.all("chat")))
        except (PagewireError, TimeoutError) as err:
            self._failed += 1
            # One failure is expected at a first start, while the index is being created.
            level = logging.INFO if self._failed == 1 else logging.WARNING
            log.log(level, "the chats' switches cannot be read; those known last count", error=repr(err))
            return False
        self._failed = 0
        return True

    def _take(self, switches: Iterable[ChatSwitch]) -> None:
        for switch in switches:
            before = self._known.get(switch.site)
            # A look that began before a switch here must not restore the state before it.
            if before is not None and before.changed_at > switch.changed_at:
                continue
            if before is None or before.on != switch.on:
                log.info("chat switched", site=switch.site, on=switch.on)
            self._known[switch.site] = switch
            if (event := self._off.get(switch.site)) is not None:
                event.clear() if switch.on else event.set()


def _read(states: Sequence[State]) -> Iterable[ChatSwitch]:
    """The switch of a state; None if this version cannot read it."""
    for state in states:
        try:
            yield ChatSwitch.stored(state.value)
        except ValidationError as err:
            log.warning("the switch of a chat cannot be read", site=state.name, problems=problems(err))


TRIES = 5  # of a write that conflicts with others


class SwitchesChanged(Retryable):
    """Other processes change the switch all the time."""

    code = "switch-changed"


class KeptSwitches:
    """One document a site: pipelines.operate.backup.ports.BackupIndex."""

    def __init__(self, states: States) -> None:
        self._states = states

    async def count(self, sites: Collection[str] | None) -> int:
        """Raises: Retryable."""
        return len(await self._of(sites))

    async def read(self, sites: Collection[str] | None) -> AsyncGenerator[Sequence[BackupDocument], None]:
        """Raises: Retryable."""
        if found := await self._of(sites):
            yield found

    async def put_back(self, documents: Sequence[BackupDocument]) -> PutBack:
        """Raises: Retryable."""
        restored = sum([await self._put_back(ChatSwitch.stored(one.source)) for one in documents])
        return PutBack(restored, len(documents) - restored)

    async def _put_back(self, switch: ChatSwitch) -> bool:
        for _ in range(TRIES):
            there = await self._states.get("chat", switch.site)
            if there is not None and ChatSwitch.stored(there.value).changed_at >= switch.changed_at:
                return False
            if await self._states.replace("chat", switch.site, switch, there) is not None:
                return True
        raise SwitchesChanged(f"the chat of site {switch.site} is switched by others all the time; try again")

    async def _of(self, sites: Collection[str] | None) -> list[BackupDocument]:
        switches = [ChatSwitch.stored(state.value) for state in await self._states.all("chat")]
        return [BackupDocument(one.site, one.dumped()) for one in switches if sites is None or one.site in sites]
