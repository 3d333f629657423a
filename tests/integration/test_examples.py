"""Operators' examples in a real Elasticsearch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from adapters.elastic.bundle import Elastic
from adapters.elastic.system_index import ElasticExamples
from schemas.example import WorkedExample
from schemas.query import Turn
from tests.engine_fixture import Servers
from wiring.settings import Settings

pytestmark = pytest.mark.engine


def example(site: str, n: int) -> WorkedExample:
    return WorkedExample(
        id=f"example-{n}",
        site=site,
        lang="en",
        history=(Turn(question="Is the pool open?", answer="Yes."),),
        question="And on Sundays?",
        output="Is the pool open on Sundays?",
        added_at=datetime(2026, 5, 4, tzinfo=UTC) + timedelta(minutes=n),
    )


async def test_examples_are_kept_per_site_in_order_and_go_when_removed(engine: Servers) -> None:
    site, other = (f"t{uuid4().hex[:10]}" for _ in range(2))
    async with Elastic(engine.elasticsearch, Settings()) as elastic:
        store = ElasticExamples(elastic.es, elastic.indexes)
        kept = [example(site, 2), example(site, 1)]
        for one in [*kept, example(other, 3)]:
            await store.put(one)
        await store.put(kept[0])  # again: replaces itself
        assert await store.of_site(site) == kept[::-1]
        assert await store.remove(site, "example-1")
        assert not await store.remove(site, "example-1")
        assert not await store.remove(site, "example-3")
        assert [one.id for one in await store.of_site(site)] == ["example-2"]
        for name in (site, other):
            for one in await store.of_site(name):
                await store.remove(name, one.id)
