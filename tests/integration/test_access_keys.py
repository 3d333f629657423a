"""Keys in a real Elasticsearch, and the command that makes and revokes them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from adapters.elastic.access_keys import ElasticKeys
from adapters.elastic.bundle import Elastic
from pipelines.operate.access_keys import AccessKeys, KeyTaken
from schemas.access_key import NewKey, digest_of
from tests.acceptance.system import Instance
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


def test_the_command_makes_lists_and_revokes(engine: Servers, tmp_path: Path) -> None:
    instance = Instance(tmp_path, engine)
    name = f"k{uuid4().hex[:10]}"
    wanted = ("keys", "create", name, "--scope", "admin", "--site", instance.site, "--expires", "90d")
    made = instance.run(*wanted)
    assert made.returncode == 0, made.stderr
    key = made.stdout.strip()
    listed = json.loads(instance.run("keys", "list", "--json").stdout)
    [mine] = [one for one in listed if one["name"] == name]
    assert mine["id"] == digest_of(key)[:12]
    assert (mine["scopes"], mine["site"], mine["state"]) == (["admin"], instance.site, "good")
    assert instance.run(*wanted).returncode == 1
    assert instance.run("keys", "revoke", name).returncode == 0
    assert instance.run("keys", "revoke", name).returncode == 1
