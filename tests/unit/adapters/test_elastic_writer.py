"""Refused items are sent again, by themselves, until they are in; others do not wait for them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest
from elasticsearch import AsyncElasticsearch

from adapters.elastic import writer as module
from adapters.elastic.client import ElasticsearchDown
from adapters.elastic.writer import Write, Writer


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
