"""Reading to the end what one answer does not hold, in a real Elasticsearch."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from elasticsearch import AsyncElasticsearch

from adapters.elastic.client import connect
from adapters.elastic.reading import batches, point_in_time, sources
from pipelines.runtime.errors import Retryable
from tests.engine_fixture import Servers
from wiring.settings import Settings

pytestmark = pytest.mark.engine

SORT = [{"number": "asc"}]


class Gone(Retryable):
    """What is read is not there."""


@pytest.fixture
async def es(engine: Servers) -> AsyncIterator[AsyncElasticsearch]:
    async with connect(engine.elasticsearch, Settings()) as client:
        yield client


@pytest.fixture
async def index(es: AsyncElasticsearch) -> AsyncIterator[str]:
    """Seven documents with the numbers from 0 on, in two shards."""
    name = f"reading-{uuid4().hex[:10]}"
    await es.indices.create(
        index=name,
        settings={"number_of_shards": 2, "number_of_replicas": 0},
        mappings={"properties": {"number": {"type": "integer"}}},
    )
    await put(es, name, range(7))
    yield name
    await es.indices.delete(index=name, ignore_unavailable=True)


async def put(es: AsyncElasticsearch, name: str, numbers: range) -> None:
    for number in numbers:
        await es.index(index=name, id=str(number), document={"number": number}, refresh=True)


@pytest.mark.parametrize(
    ("size", "most", "expected"),
    [
        (3, None, [[0, 1, 2], [3, 4, 5], [6]]),
        (7, None, [[0, 1, 2, 3, 4, 5, 6]]),
        (10, None, [[0, 1, 2, 3, 4, 5, 6]]),
        (3, 5, [[0, 1, 2], [3, 4]]),
        (3, 6, [[0, 1, 2], [3, 4, 5]]),
        (3, 0, []),
    ],
)
async def test_batch_after_batch(
    es: AsyncElasticsearch, index: str, size: int, most: int | None, expected: list[list[int]]
) -> None:
    found = batches(es, "reading", size, absent=None, most=most, index=index, sort=SORT)
    assert [[hit["_source"]["number"] for hit in hits] async for hits in found] == expected


async def test_all_documents_one_after_the_other(es: AsyncElasticsearch, index: str) -> None:
    every = sources(batches(es, "reading", 2, absent=None, index=index, sort=SORT))
    assert [source["number"] async for source in every] == list(range(7))


async def test_of_a_moment_nothing_that_came_later(es: AsyncElasticsearch, index: str) -> None:
    async with point_in_time(es, index, absent=Gone()) as point:
        await put(es, index, range(7, 9))
        every = sources(batches(es, "reading", 2, absent=Gone(), point=point))
        assert sorted([source["number"] async for source in every]) == list(range(7))


async def test_what_is_not_there(es: AsyncElasticsearch) -> None:
    nowhere = f"reading-{uuid4().hex[:10]}"
    assert [hits async for hits in batches(es, "reading", 2, absent=None, index=nowhere, sort=SORT)] == []
    with pytest.raises(Gone):
        await anext(batches(es, "reading", 2, absent=Gone(), index=nowhere, sort=SORT))
    with pytest.raises(Gone):
        async with point_in_time(es, nowhere, absent=Gone()):
            pass


async def test_a_moment_that_is_over_is_not_taken_for_the_end(es: AsyncElasticsearch, index: str) -> None:
    async with point_in_time(es, index, absent=Gone()) as point:
        found = batches(es, "reading", 2, absent=Gone(), point=point)
        assert len(await anext(found)) == 2
        await es.close_point_in_time(id=point.id)
        with pytest.raises(Gone):
            await anext(found)
