"""Switching a site's chat off and on while the system runs: heeded by every gateway and worker within seconds.

    throw ─▶ store ◀── look, every REFRESH seconds ── known ◀── every question, without waiting
                                                        └─▶ the event that ends answers under way

Where the store is away, what was known last stays so. A process that starts in that time answers until the store is
back: without it nothing can be found to answer with.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from weakref import WeakValueDictionary

import structlog
from pydantic import ValidationError

from pipelines.operate.states import State, States
from pipelines.runtime.errors import PagewireError, Permanent
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
        enabled: by site, what pagewire.yaml says. now: the time that all gateways go by.
    """

    def __init__(self, store: States, enabled: Mapping[str, bool], now: Callable[[], datetime]) -> None:
        self._store = store
        self._enabled = enabled
        self._now = now
        self._known: dict[str, ChatSwitch] = {}
        # Of sites with answers under way, which hold them: one of each site that was ever asked would be thousands.
        self._off: WeakValueDictionary[str, asyncio.Event] = WeakValueDictionary()
        self._keeping = PeriodicTask("chat switches", REFRESH, self.look)

    def off(self, site: str) -> bool:
        """Whether no question of this site is to be answered, as far as is known here."""
        return not self.state(site).on

    def went_off(self, site: str) -> asyncio.Event:
        """Set while it is switched off. The file's word is none that could change."""
        event = self._off.get(site)
        if event is None:
            event = self._off[site] = asyncio.Event()
            if (switch := self._known.get(site)) is not None and not switch.on:
                event.set()
        return event

    def state(self, site: str) -> ChatState:
        """As far as is known here; waits for nothing."""
        switch = self._known.get(site)
        thrown = {"changed_at": switch.changed_at, "changed_by": switch.changed_by} if switch else {}
        if not self._enabled.get(site, True):
            return ChatState.model_validate({"site": site, "on": False, "by": "file"} | thrown)
        said = {"on": switch.on, "by": "switch"} if switch else {"on": True, "by": "default"}
        return ChatState.model_validate({"site": site} | said | thrown)

    async def throw(self, site: str, *, on: bool, by: str) -> ChatState:
        """Switch the chat of a site; here it is so at once.

        Raises:
            ChatOffInFile: it cannot be switched on. Retryable: nothing was changed, as far as is known.
        """
        if on and not self._enabled.get(site, True):
            raise ChatOffInFile(f"sites.{site}.chat.enabled is false in pagewire.yaml: change it there and start anew")
        switch = ChatSwitch(site=site, on=on, changed_at=self._now(), changed_by=by)
        await self._store.put("chat", site, switch)
        self._take([switch])
        return self.state(site)

    async def look(self) -> bool:
        """Read them once; whether there was an answer. Those that are known stay until there is a new one."""
        try:
            async with asyncio.timeout(LOOK_TIMEOUT):
                self._take(_read(await self._store.all("chat")))
        except (PagewireError, TimeoutError) as err:
            log.warning("the chats' switches cannot be read; those known last count", error=repr(err))
            return False
        return True

    async def start(self) -> None:
        """Look, and look again from time to time."""
        await self._keeping.start()

    async def aclose(self) -> None:
        await self._keeping.aclose()

    def _take(self, switches: Iterable[ChatSwitch]) -> None:
        for switch in switches:
            before = self._known.get(switch.site)
            # A look that began before a switch was thrown here must not bring back what was before it.
            if before is not None and before.changed_at > switch.changed_at:
                continue
            if before is None or before.on != switch.on:
                log.info("chat switched", site=switch.site, on=switch.on)
            self._known[switch.site] = switch
            if (event := self._off.get(switch.site)) is not None:
                event.clear() if switch.on else event.set()


def _read(states: Sequence[State]) -> Iterable[ChatSwitch]:
    """One that this version cannot read keeps nobody from reading the others."""
    for state in states:
        try:
            yield ChatSwitch.stored(state.value)
        except ValidationError as err:
            log.warning("the switch of a chat cannot be read", site=state.name, problems=problems(err))
