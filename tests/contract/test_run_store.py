"""What published runs rely on, the same for the real Elasticsearch and for its in-memory sibling."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import uuid4

import pytest

from adapters.elastic.bundle import Elastic
from adapters.elastic.system_index import ElasticRuns
from pipelines.evaluate.publication import RunStore
from schemas.evaluation import ListedRun
from tests.asking import NOON
from tests.engine_fixture import Servers
from tests.fakes.stores import FakeRuns
from tests.published_runs import AFTER, run
from wiring.settings import Settings


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.engine)])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[RunStore]:
    if request.param == "fake":
        yield FakeRuns()
        return
    engine: Servers = request.getfixturevalue("engine")
    async with Elastic(engine.elasticsearch, Settings()) as elastic:
        yield ElasticRuns(elastic.es, elastic.indexes)


@pytest.fixture
def site() -> str:
    """Nobody else's on servers that are everybody's."""
    return f"t{uuid4().hex[:10]}"


async def test_a_run_is_read_as_it_was_published_and_twice_is_once(store: RunStore, site: str) -> None:
    kept = run(site=site)
    await store.put(kept)
    again = kept.model_copy(update={"note": "Again."})
    await store.put(again)
    assert await store.get(site, kept.id) == again
    assert await store.of_site(site) == [ListedRun.model_validate(again.model_dump(exclude={"results"}))]
    assert await store.get(f"{site}x", kept.id) is None


async def test_the_newest_runs_come_first_and_can_be_of_one_dataset(store: RunStore, site: str) -> None:
    assert await store.of_site(site) == []
    runs = [run(days, AFTER, site=site, dataset=name) for days, name in ((2, "a"), (1, "b"), (3, "b"))]
    for each in runs:
        await store.put(each)
    assert [each.id for each in await store.of_site(site)] == [runs[2].id, runs[0].id, runs[1].id]
    assert [each.id for each in await store.of_site(site, "b")] == [runs[2].id, runs[1].id]


async def test_a_run_is_taken_away_or_goes_when_it_is_too_old(store: RunStore, site: str) -> None:
    runs = [run(days, site=site) for days in (1, 2, 3)]
    for each in runs:
        await store.put(each)
    assert await store.remove(site, runs[2].id)
    assert not await store.remove(site, runs[2].id)
    assert await store.expire({site: NOON + timedelta(days=1.5), "another": NOON}) == {site: 1}
    assert [each.id for each in await store.of_site(site)] == [runs[1].id]
