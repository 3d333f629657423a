"""What a site's log relies on, the same for the real Elasticsearch and its in-memory sibling."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest

from adapters.elastic.bundle import Elastic
from adapters.elastic.indexes import PLACES
from pipelines.operate.record_places import Covered, NotedRange, Places
from tests.engine_fixture import Servers
from tests.fakes.pages import FakePlaces
from wiring.settings import Settings


@pytest.fixture(params=["fake", pytest.param("elastic", marks=pytest.mark.engine)])
async def places(request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    if request.param == "fake":
        yield FakePlaces()
        return
    engine: Servers = request.getfixturevalue("engine")
    async with Elastic(engine.elasticsearch, Settings()) as elastic:
        yield elastic.places


@pytest.fixture
def topic() -> str:
    """An id that no topic has."""
    return str(uuid4())


async def of_site(places: Places, topic: str, site: str, partition: int = 0) -> list[NotedRange]:
    return [stretch async for stretch in places.of_site(topic, site, partition)]


def noted(start: int, end: int, *runs: tuple[int, int], site: str = "town", partition: int = 0) -> NotedRange:
    return NotedRange(site, partition, start, end, list(runs))


async def test_of_a_topic_nobody_has_read_nothing_is_covered(places: Places, topic: str) -> None:
    assert await places.covered(topic) == Covered({})
    await places.forget(topic)


async def test_what_is_added_can_be_read_and_is_covered(places: Places, topic: str) -> None:
    ones = [noted(0, 10, (2, 3), (7, 7)), noted(0, 10, (5, 5), site="town-hall"), noted(0, 4, (1, 1), partition=1)]
    covered = await places.add(topic, ones, Covered({}), {0: 10, 1: 4})
    assert covered == await places.covered(topic)
    assert covered is not None
    assert covered.ends == {0: 10, 1: 4}
    assert await of_site(places, topic, "town") == ones[:1]
    assert await of_site(places, topic, "town", 1) == ones[2:]
    assert await of_site(places, str(uuid4()), "town") == []
    more = [noted(10, 20, (12, 12))]
    covered = await places.add(topic, more, covered, {0: 20})
    assert covered is not None
    assert covered.ends == {0: 20, 1: 4}
    assert await of_site(places, topic, "town") == ones[:1] + more


async def test_of_two_who_note_at_once_one_is_told_and_nothing_true_is_lost(places: Places, topic: str) -> None:
    first = await places.add(topic, [noted(0, 10, (1, 1))], Covered({}), {0: 10})
    assert first is not None
    further = await places.add(topic, [noted(10, 30, (11, 11), (25, 25))], first, {0: 30})
    assert further is not None
    assert await places.add(topic, [noted(10, 20, (11, 11))], first, {0: 20}) is None
    assert (await places.covered(topic)).ends == {0: 30}
    assert [one.end for one in await of_site(places, topic, "town")] == [10, 30]
    assert await places.add(topic, [], Covered({}), {0: 99}) is None, "who has seen none there takes none's place"


async def test_a_shorter_rest_takes_its_place_and_none_at_all_takes_it_away(places: Places, topic: str) -> None:
    ones = [noted(0, 10, (1, 1), (3, 3)), noted(10, 20, (12, 12))]
    assert await places.add(topic, ones, Covered({}), {0: 20})
    await places.put(topic, noted(0, 10, (3, 3)))
    await places.put(topic, noted(10, 20))
    await places.add(topic, [], await places.covered(topic), {1: 5})  # what is written becomes searchable
    assert await of_site(places, topic, "town") == [noted(0, 10, (3, 3))]


async def test_what_is_forgotten_is_covered_no_more_and_may_be_added_anew(places: Places, topic: str) -> None:
    assert await places.add(topic, [noted(0, 10, (1, 1))], Covered({}), {0: 10})
    await places.forget(topic)
    covered = await places.covered(topic)
    assert covered.ends == {}
    again = await places.add(topic, [noted(0, 10, (1, 1))], covered, {0: 10})
    assert again is not None
    assert again.ends == {0: 10}


@pytest.mark.engine
async def test_many_stretches_are_read_in_order(engine: Servers, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapters.elastic.bundle.AT_ONCE", 3)
    async with Elastic(engine.elasticsearch, Settings()) as elastic:
        ones = [noted(start, start + 2, (start, start)) for start in range(0, 20, 2)]
        assert await elastic.places.add(topic, ones[::-1], Covered({}), {0: 20})
        assert await of_site(elastic.places, topic, "town") == ones
        made = (await elastic.es.indices.get_mapping(index=PLACES))[PLACES]
        assert made["mappings"]["dynamic"] == "strict"
