"""Keys in a real Elasticsearch."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import uuid4

import pytest

from adapters.elastic.bundle import Elastic
from adapters.elastic.system_index import ElasticKeys
from pipelines.operate.access_keys import AccessKeys, KeyTaken
from schemas.access_key import NewKey, digest_of
from tests.engine_fixture import Servers
from wiring.settings import Settings

pytestmark = pytest.mark.engine


async def test_keys_are_kept_by_their_name_and_go_when_revoked(engine: Servers) -> None:
    name = f"k{uuid4().hex[:10]}"
    async with Elastic(engine.elasticsearch, Settings()) as elastic:
        store = ElasticKeys(elastic.es, elastic.indexes)
        keys = AccessKeys(store, (), lambda: datetime.now(UTC))
        made = await keys.create(NewKey(name=name, scopes=("chat",), site="town", groups=("staff",)), "admin")
        [kept] = [key for key in await store.all() if key.name == name]
        assert (kept.sha256, kept.groups, kept.created_by) == (digest_of(made.key), ("staff",), "admin")
        with pytest.raises(KeyTaken):
            await keys.create(NewKey(name=name, scopes=("admin",)), "admin")
        assert [key for key in await store.all() if key.name == name] == [kept]
        await keys.revoke(made.id)
        assert name not in [key.name for key in await store.all()]
        assert not await store.remove(name)


async def test_an_index_that_is_deleted_meanwhile_is_made_again_with_its_mapping(engine: Servers) -> None:
    name = f"k{uuid4().hex[:10]}"
    async with Elastic(engine.elasticsearch, Settings()) as elastic:
        store = ElasticKeys(elastic.es, elastic.indexes)
        keys = AccessKeys(store, (), lambda: datetime.now(UTC))
        await keys.create(NewKey(name=f"{name}-before", scopes=("chat",)), "admin")
        await elastic.es.indices.delete(index=store.index)
        await keys.create(NewKey(name=name, scopes=("chat",)), "admin")
        assert [key.name for key in await store.all()] == [name]
        mapping = (await elastic.es.indices.get_mapping(index=store.index))[store.index]["mappings"]
        assert mapping["dynamic"] == "strict"
