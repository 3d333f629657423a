"""What processes must know of each other: the store, in a real Elasticsearch and in memory; and the kill switch."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from adapters.elastic.bundle import Elastic
from adapters.elastic.system_index import ElasticStates
from pipelines.operate.states import States
from schemas.chat_switch import ChatSwitch
from tests.engine_fixture import Servers
from tests.fakes.stores import FakeStates
from tests.making import NOON
from wiring.settings import Settings

pytestmark = pytest.mark.engine


@pytest.fixture(params=["elasticsearch", "memory"])
async def states(request: pytest.FixtureRequest, engine: Servers) -> AsyncIterator[States]:
    async with Elastic(engine.elasticsearch, Settings()) as elastic:
        yield ElasticStates(elastic.es, elastic.indexes) if request.param == "elasticsearch" else FakeStates()


async def test_what_was_put_is_found_by_kind_and_name_and_the_faster_one_stays(states: States) -> None:
    site = f"s{uuid4().hex[:10]}"
    off = ChatSwitch(site=site, on=False, changed_at=NOON)
    assert await states.get("chat", site) is None
    await states.put("chat", site, off)
    found = await states.get("chat", site)
    assert found is not None
    assert ChatSwitch.stored(found.value) == off
    assert [each for each in await states.all("chat") if each.name == site] == [found]
    assert site not in [each.name for each in await states.all("audit-run")]
    on = off.model_copy(update={"on": True})
    replaced = await states.replace("chat", site, on, found)
    assert replaced is not None
    assert await states.replace("chat", site, off, found) is None
    assert await states.replace("chat", site, off, None) is None
    assert await states.get("chat", site) == replaced
    assert await states.replace("chat", site, off, replaced) is not None


async def test_more_is_kept_of_a_kind_than_an_answer_has(states: States, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapters.elastic.system_index.AT_ONCE", 2)
    sites = [f"s{uuid4().hex[:10]}" for _ in range(5)]
    for site in sites:
        await states.put("chat", site, ChatSwitch(site=site, on=False, changed_at=NOON))
    assert set(sites) <= {each.name for each in await states.all("chat")}
