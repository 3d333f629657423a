"""Refused items are sent again, by themselves, until they are in; others do not wait for them. Refreshes are shared."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest
from elasticsearch import AsyncElasticsearch

from adapters.elastic import writer as module
from adapters.elastic.client import ElasticsearchDown
from adapters.elastic.writer import Write, Writer
from pipelines.runtime.record import Lane


class Bulks:
    """Elasticsearch's bulk API, as far as the writer knows it: `refuses(id, how often it was sent)`."""

    def __init__(self, refuses: Callable[[str, int], bool]) -> None:
        self.sent: Counter[str] = Counter()
        self._refuses = refuses

    async def bulk(self, *, operations: Sequence[dict[str, Any]]) -> dict[str, Any]:
        await asyncio.sleep(0)
        items = []
        for action in (line for line in operations if "index" in line):
            id = action["index"]["_id"]
            self.sent[id] += 1
            item: dict[str, Any] = {"_id": id, "status": 200}
            if self._refuses(id, self.sent[id]):
                item |= {"status": 429, "error": {"type": "es_rejected_execution_exception", "reason": "full"}}
            items.append({"index": item})
        return {"items": items}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST_BACKOFF", 0.001)


def writing(bulks: Bulks) -> Writer:
    return Writer(cast(AsyncElasticsearch, bulks))


def writes(*ids: str) -> list[Write]:
    return [Write("town", id, 1, {"text": id}) for id in ids]


async def test_each_item_is_sent_until_it_is_taken_and_never_again() -> None:
    bulks = Bulks(lambda id, times: times <= int(id) % 7)
    writer = writing(bulks)
    ids = [str(n) for n in range(40)]
    assert [written.id for written in await writer.write(writes(*ids))] == ids
    assert bulks.sent == {id: int(id) % 7 + 1 for id in ids}
    await writer.aclose()


async def test_others_do_not_wait_for_what_is_refused() -> None:
    full, room = asyncio.Event(), asyncio.Event()

    def refuses(id: str, times: int) -> bool:
        if id == "refused":
            full.set()
        return id == "refused" and not room.is_set()

    writer = writing(Bulks(refuses))
    refused = asyncio.create_task(writer.write(writes("refused")))
    await full.wait()
    assert [written.id for written in await writer.write(writes("other"))] == ["other"]
    assert not refused.done()
    room.set()
    assert [written.id for written in await refused] == ["refused"]
    await writer.aclose()


async def test_its_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ITEM_PATIENCE", 0.05)
    bulks = Bulks(lambda id, times: id == "refused")
    writer = writing(bulks)
    with pytest.raises(ElasticsearchDown, match="es_rejected_execution_exception"):
        await writer.write(writes("fine", "refused"))
    assert bulks.sent["fine"] == 1 < bulks.sent["refused"]
    await writer.aclose()


class Refreshes:
    """Elasticsearch's refresh API; `made`: how many ended."""

    def __init__(self) -> None:
        self.made = 0
        self.indices = self

    async def refresh(self, *, index: str) -> None:
        await asyncio.sleep(0)
        self.made += 1


def refreshing(refreshes: Refreshes, lane: Lane) -> Writer:
    return Writer(cast(AsyncElasticsearch, refreshes), lane)


async def test_each_lone_save_is_refreshed_at_once() -> None:
    refreshes = Refreshes()
    writer = refreshing(refreshes, "save")
    async with asyncio.timeout(1):
        for made in range(1, 21):
            await writer.refresh("town")
            assert refreshes.made == made
    await writer.aclose()


def paced(monkeypatch: pytest.MonkeyPatch, lane: Lane, **changes: float) -> None:
    monkeypatch.setitem(module.PACES, lane, replace(module.PACES[lane], **cast(Any, changes)))


async def test_a_crowd_of_saves_shares_a_refresh_and_the_next_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    paced(monkeypatch, "save", gap=60.0, lull=60.0)
    refreshes = Refreshes()
    writer = refreshing(refreshes, "save")
    await asyncio.gather(*(writer.refresh("town") for _ in range(module.PACES["save"].crowd)))
    assert refreshes.made == 1
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await writer.refresh("town")
    assert refreshes.made == 1
    await writer.aclose()


async def test_bulk_work_waits_for_company(monkeypatch: pytest.MonkeyPatch) -> None:
    paced(monkeypatch, "bulk", gap=60.0, lull=60.0, full=4)
    refreshes = Refreshes()
    writer = refreshing(refreshes, "bulk")
    async with asyncio.timeout(1):
        await writer.refresh("town")  # nothing was refreshed lately
        await writer.refresh("hamlet")  # each index for itself
    assert refreshes.made == 2
    waiting = [asyncio.create_task(writer.refresh("town")) for _ in range(3)]
    await asyncio.sleep(0.05)
    assert not any(task.done() for task in waiting)
    async with asyncio.timeout(1):
        await writer.refresh("town")  # the company is complete
        await asyncio.gather(*waiting)
    assert refreshes.made == 3
    await writer.aclose()


@pytest.mark.parametrize("changes", [{"gap": 0.05, "lull": 60.0}, {"gap": 60.0, "lull": 0.05}], ids=["gap", "lull"])
async def test_bulk_work_without_company_does_not_wait_long(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, float]
) -> None:
    paced(monkeypatch, "bulk", **changes)
    refreshes = Refreshes()
    writer = refreshing(refreshes, "bulk")
    async with asyncio.timeout(5):
        for _ in range(3):
            await writer.refresh("town")
    assert refreshes.made == 3
    await writer.aclose()


async def test_bulk_work_waits_while_company_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    paced(monkeypatch, "bulk", gap=60.0, lull=0.5)
    refreshes = Refreshes()
    writer = refreshing(refreshes, "bulk")
    await writer.refresh("town")
    waiting = []
    for _ in range(20):
        waiting.append(asyncio.create_task(writer.refresh("town")))
        await asyncio.sleep(0.05)
    assert refreshes.made == 1  # a second has passed, never half a one alone
    await asyncio.gather(*waiting)
    assert refreshes.made == 2
    await writer.aclose()
