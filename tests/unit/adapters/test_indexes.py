"""How long it is remembered which index is live."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from elasticsearch import AsyncElasticsearch

from adapters.elastic import indexes as module
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
