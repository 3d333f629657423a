"""Kill switches in a backup: a chat that was switched off stays off after a restore.

If there is a switch already, the newer one stays.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Sequence

from pipelines.operate.backup.ports import BackupDocument, PutBack
from pipelines.operate.states import States
from pipelines.runtime.errors import Retryable
from schemas.chat_switch import ChatSwitch

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
