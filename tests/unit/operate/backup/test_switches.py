"""Kill switches of a backup: what is kept of them, and which of two stays."""

from __future__ import annotations

from datetime import timedelta

import pytest

from pipelines.operate.backup.manifest import BackupDocument, PutBack
from pipelines.operate.chat_switches import KeptSwitches, SwitchesChanged
from pipelines.operate.states import Kind, State
from schemas.base import Wire
from schemas.chat_switch import ChatSwitch
from tests.fakes.stores import FakeStates
from tests.making import NOON


def switch(site: str, *, on: bool, hours: int = 0) -> ChatSwitch:
    return ChatSwitch(site=site, on=on, changed_at=NOON + timedelta(hours=hours), changed_by="anna")


def document(one: ChatSwitch) -> BackupDocument:
    return BackupDocument(one.site, one.dumped())


async def states(*switches: ChatSwitch) -> FakeStates:
    kept = FakeStates()
    for one in switches:
        await kept.put("chat", one.site, one)
    return kept


async def test_those_of_the_sites_are_kept() -> None:
    town, lake = switch("town", on=False), switch("lake", on=True)
    kept = KeptSwitches(await states(town, lake))
    assert (await kept.count(None), await kept.count(["town"]), await kept.count(["sea"])) == (2, 1, 0)
    assert [found async for found in kept.read(None)] == [[document(town), document(lake)]]
    assert [found async for found in kept.read(["lake"])] == [[document(lake)]]
    assert [found async for found in kept.read(["sea"])] == []


async def test_the_one_that_was_thrown_last_stays() -> None:
    there = await states(
        switch("older", on=True, hours=-1), switch("same", on=False), switch("newer", on=True, hours=1)
    )
    restored = [switch(site, on=False) for site in ("older", "same", "newer", "absent")]
    assert await KeptSwitches(there).put_back([document(one) for one in restored]) == PutBack(restored=2, there=2)
    on = {state.name: state.value["on"] for state in await there.all("chat")}
    assert on == {"older": False, "same": False, "newer": True, "absent": False}
    assert await KeptSwitches(there).put_back([document(one) for one in restored]) == PutBack(restored=0, there=4)


async def test_one_that_is_thrown_meanwhile_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    there = await states()
    thrown = [switch("town", on=True, hours=1)]
    replace = there.replace

    async def slow(kind: Kind, name: str, value: Wire, before: State | None) -> State | None:
        if thrown:
            await there.put("chat", "town", thrown.pop())
        return await replace(kind, name, value, before)

    monkeypatch.setattr(there, "replace", slow)
    assert await KeptSwitches(there).put_back([document(switch("town", on=False))]) == PutBack(restored=0, there=1)


async def test_one_that_changes_all_the_time_is_tried_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    there = await states()

    async def never(*_: object) -> None:
        return None

    monkeypatch.setattr(there, "replace", never)
    with pytest.raises(SwitchesChanged, match="town"):
        await KeptSwitches(there).put_back([document(switch("town", on=False))])
