"""Refused items are sent again, by themselves, until they are in; others do not wait for them. Refreshes are shared."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest
from elastic_transport import ApiResponseMeta, HttpHeaders, NodeConfig
from elasticsearch import ApiError, AsyncElasticsearch

from adapters.elastic import writer as module
from adapters.elastic.client import ElasticsearchDown, ElasticsearchRefused
from adapters.elastic.writer import Write, Writer
from pipelines.runtime.record import Lane


class Bulks:
    """Elasticsearch's bulk API, as far as the writer knows it: `refuses(id, how often it was sent)`.

    Bulks of more than `longest` items are refused as a whole; `bulks`: the items of those that were taken.
    """

    def __init__(
        self, refuses: Callable[[str, int], bool] = lambda id, times: False, status: int = 429, longest: int = 10_000
    ) -> None:
        self.sent: Counter[str] = Counter()
        self.bulks: list[list[str]] = []
        self.free = asyncio.Event()  # bulks are answered while it is set
        self.free.set()
        self._refuses = refuses
        self._refusal = {"status": status, "error": {"type": "refused", "reason": "full"}}
        self._longest = longest

    async def bulk(self, *, operations: Sequence[dict[str, Any]]) -> dict[str, Any]:
        await asyncio.sleep(0)
        await self.free.wait()
        ids = [line["index"]["_id"] for line in operations if "index" in line]
        if len(ids) > self._longest:
            meta = ApiResponseMeta(413, "1.1", HttpHeaders(), 0.1, NodeConfig("http", "localhost", 9200))
            raise ApiError("too long", meta, {})
        self.bulks.append(ids)
        items = []
        for id in ids:
            self.sent[id] += 1
            item: dict[str, Any] = {"_id": id, "status": 200}
            items.append({"index": item | self._refusal if self._refuses(id, self.sent[id]) else item})
        return {"items": items}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST_BACKOFF", 0.001)


def writing(bulks: Bulks) -> Writer:
    return Writer(cast(AsyncElasticsearch, bulks))


def writes(*ids: str) -> list[Write]:
    return [Write("town", id, 1, {"text": id}) for id in ids]


@pytest.mark.parametrize("status", [429, 503, 403], ids=["queue full", "no shard", "index block"])
async def test_each_item_is_sent_until_it_is_taken_and_never_again(status: int) -> None:
    bulks = Bulks(lambda id, times: times <= int(id) % 7, status)
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
    monkeypatch.setattr(module, "ITEM_TIMEOUT", 0.05)
    bulks = Bulks(lambda id, times: id == "refused")
    writer = writing(bulks)
    with pytest.raises(ElasticsearchDown, match="refused: full"):
        await writer.write(writes("fine", "refused"))
    assert bulks.sent["fine"] == 1 < bulks.sent["refused"]
    await writer.aclose()


async def test_an_item_that_will_never_be_taken_is_told_at_once_and_holds_up_no_other() -> None:
    bulks = Bulks(lambda id, times: id == "odd", status=400)
    writer = writing(bulks)
    with pytest.raises(ElasticsearchRefused, match="refused: full"):
        await writer.write(writes("fine", "odd"))
    assert bulks.sent == {"fine": 1, "odd": 1}
    await writer.aclose()


@pytest.mark.parametrize("limit", ["MAX_BULK_ITEMS", "MAX_BULK_CHARS"])
async def test_however_much_waits_no_bulk_is_larger_than_it_may_be(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    pages = [writes(str(n)) for n in range(50)]
    monkeypatch.setattr(module, limit, 10 if limit == "MAX_BULK_ITEMS" else sum(w.chars for [w] in pages[:10]))
    bulks = Bulks()
    bulks.free.clear()  # all wait for the first one
    writer = writing(bulks)
    writing_all = [asyncio.create_task(writer.write(page)) for page in pages]
    await asyncio.sleep(0.01)
    bulks.free.set()
    await asyncio.gather(*writing_all)
    assert max(map(len, bulks.bulks)) == 10
    assert [id for ids in bulks.bulks for id in ids] == [str(n) for n in range(50)]
    await writer.aclose()


async def test_what_the_server_finds_too_long_is_sent_in_pieces_in_order() -> None:
    bulks = Bulks(longest=3)
    writer = writing(bulks)
    ids = [str(n) for n in range(20)]
    assert [written.id for written in await writer.write(writes(*ids))] == ids
    assert [id for some in bulks.bulks for id in some] == ids
    await writer.aclose()


async def test_a_single_item_that_is_too_long_is_refused() -> None:
    writer = writing(Bulks(longest=0))
    with pytest.raises(ElasticsearchRefused, match="413"):
        await writer.write(writes("long"))
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


async def test_an_index_is_kept_in_mind_while_it_is_refreshed() -> None:
    class Refreshes:
        def __init__(self) -> None:
            self.indices = self

        async def refresh(self, *, index: str) -> None:
            await asyncio.sleep(0)

    writer = Writer(cast(AsyncElasticsearch, Refreshes()))
    for number in range(50):
        await writer.refresh(f"index-{number}")
    assert len(writer._refreshing) <= 1
    await writer.aclose()
