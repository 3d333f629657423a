"""How long it is remembered which index is live."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, cast

import pytest
from elasticsearch import AsyncElasticsearch

from adapters.elastic import indexes as module
from adapters.elastic.client import ElasticsearchDown
from adapters.elastic.indexes import ElasticIndexes, IndexInfo

INFO = IndexInfo("pagewire-town-000001", "town", "fake", "fake-4", 4, "content-512-20")


class Looked(ElasticIndexes):
    """Finds what it is told, and counts the looks."""

    def __init__(self, info: IndexInfo | None) -> None:
        none: Any = None  # nothing is made here
        super().__init__(cast(AsyncElasticsearch, None), none, none, shards=1, replicas=0)
        self.info = info
        self.looks = 0

    async def _read(self, site: str) -> IndexInfo | None:
        self.looks += 1
        return self.info

    async def _list(self, site: str) -> list[IndexInfo]:
        self.looks += 1
        return [self.info] if self.info else []


async def test_a_live_index_is_looked_up_once_in_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "INFO_TTL", 600.0)
    indexes = Looked(INFO)
    assert [await indexes.live("town") for _ in range(3)] == [INFO] * 3
    assert indexes.looks == 1
    assert await indexes.now("town") == INFO
    assert indexes.looks == 2


async def test_it_is_looked_up_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "INFO_TTL", 0.0)
    indexes = Looked(INFO)
    for _ in range(3):
        assert await indexes.live("town") == INFO
    assert indexes.looks == 3


async def test_a_search_takes_an_older_look_and_waits_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "INFO_TTL", 0.0)
    indexes = Looked(INFO)
    assert await indexes.recent("town") == INFO
    promoted = indexes.info = replace(INFO, name="pagewire-town-000002")
    assert [await indexes.recent("town") for _ in range(3)] == [INFO] * 3
    await asyncio.gather(*indexes._renewed.values())
    assert indexes.looks == 2
    assert await indexes.recent("town") == promoted
    await asyncio.gather(*indexes._renewed.values())
    indexes.info = None
    assert await indexes.recent("town") == promoted
    await asyncio.gather(*indexes._renewed.values())
    assert await indexes.recent("town") is None


async def test_a_look_that_fails_is_no_reason_to_go_on_with_an_older_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "INFO_TTL", 0.0)
    indexes = Looked(INFO)
    await indexes.recent("town")

    async def down(site: str) -> IndexInfo | None:
        raise ElasticsearchDown("away")

    monkeypatch.setattr(indexes, "_read", down)
    assert await indexes.recent("town") == INFO
    await asyncio.gather(*indexes._renewed.values(), return_exceptions=True)
    with pytest.raises(ElasticsearchDown):
        await indexes.recent("town")


async def test_that_there_is_none_is_not_remembered() -> None:
    indexes = Looked(None)
    assert await indexes.live("town") is None
    indexes.info = INFO
    assert await indexes.live("town") == INFO
    indexes.info = None
    assert await indexes.now("town") is None
    assert await indexes.live("town") is None


async def test_a_site_that_was_looked_up_leaves_nothing_behind() -> None:
    indexes = Looked(INFO)
    for number in range(50):
        await indexes.now(f"site-{number}")
    assert not indexes._looks


async def test_those_who_list_at_once_share_a_look() -> None:
    indexes = Looked(INFO)
    assert await asyncio.gather(indexes.generations("town"), indexes.generations("town")) == [[INFO], [INFO]]
    assert indexes.looks == 1
    assert await indexes.generations("town") == [INFO]
    assert indexes.looks == 2
    assert not indexes._listings
