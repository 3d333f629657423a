"""Many sites rebuilt by one command on the real Kafka and Elasticsearch: each by its own records, and told of."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from aiokafka.admin import AIOKafkaAdminClient

from adapters.elastic import site_statuses
from adapters.elastic.bundle import Elastic
from adapters.elastic.settings import SiteIndex
from adapters.kafka import KafkaSender, ensure_topics, prefixed
from adapters.kafka.scan import KafkaLogScan
from adapters.kafka.sender import Outgoing
from cli.rebuild_steps import Fleet, RebuildOptions, rebuild_fleet
from schemas.page import PageChange, PageDocument
from schemas.topics import CHANGES, all_topics
from tests.acceptance.word_embedder import word_embedder
from tests.engine_fixture import Servers
from tests.making import NOON
from tests.site_indexes import KINDS, forget
from wiring.settings import Settings, SiteSettings

pytestmark = pytest.mark.engine

WANTED = RebuildOptions(
    "changes", None, None, None, questions=None, margin=0.03, promote=True, fresh=False, announced=False
)  # fmt: skip


def saved(site: str, page: str) -> PageChange:
    document = PageDocument(id=page, lang="en", title=page, content=f"<p>The {page} of {site} is open.</p>")
    return PageChange(
        op="upsert", site=site, lang="en", page_id=page, revision=1, accepted_at=NOON, source="push", page=document
    )


@pytest.fixture(params=KINDS)
async def settings(request: pytest.FixtureRequest, engine: Servers) -> AsyncIterator[Settings]:
    name = f"t{uuid4().hex[:10]}"
    with word_embedder() as embedder:
        made = Settings(
            kafka=engine.kafka,
            elasticsearch=engine.elasticsearch,
            embedder="openai:words-64",
            openai_base_url=embedder.url,
            topic_prefix=f"{name}.",
            site_index=request.param,
            sites={f"{name}-{site}": SiteSettings() for site in ("a", "b", "c")},
        )
        await ensure_topics(engine.kafka, made)
        yield made
    async with Elastic(engine.elasticsearch, made) as elastic:
        await forget(elastic, *made.sites)
    admin = AIOKafkaAdminClient(bootstrap_servers=engine.kafka)
    await admin.start()
    try:
        await admin.delete_topics([prefixed(made, topic) for topic in all_topics()])
    finally:
        await admin.close()


async def test_each_gets_a_new_index_of_its_own_pages_and_is_passed_over_by_the_next_run(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b, c = settings.sites
    changes = [saved(site, f"page{number}") for number in range(12) for site in (a, b)]
    async with KafkaSender(settings) as sender:
        await sender.send_many([Outgoing(CHANGES, change.page_key, change) for change in changes])
    async with Elastic(str(settings.elasticsearch), settings) as elastic:
        for site in (a, b):
            await elastic.indexes.ensure(site, embedder="fake", model="fake-4", dims=4, chunker="content-512-20")
        came = await rebuild_fleet(settings, Fleet("t*", 2, again=False), WANTED)
        assert [(one.site, one.outcome, one.why) for one in came] == [
            (a, "live", ""), (b, "live", ""), (c, "no index", ""),
        ]  # fmt: skip
        for site in (a, b):
            [status] = await elastic.site_statuses([site])
            live = await elastic.indexes.now(site)
            assert live is not None
            assert (status.pages, status.embedder) == (12, live.model)
        async with KafkaLogScan(settings, CHANGES) as scan:
            known = await elastic.places.covered(str(await scan.identity()))
            assert known.ends == await scan.ends(), "the first to read it all has noted it for all"
        again = await rebuild_fleet(settings, Fleet("t*", 2, again=False), WANTED)
        assert [one.outcome for one in again] == ["as wanted", "as wanted", "no index"]
        monkeypatch.setitem(site_statuses.KINDS, "outdated", site_statuses.LIVE)  # as if another version had read them
        newer = await rebuild_fleet(settings, Fleet("t*", 2, again=False), WANTED)
    assert [one.outcome for one in newer] == ["live", "live", "no index"]


async def test_who_is_to_share_an_index_from_now_on_is_moved_and_not_passed_over(settings: Settings) -> None:
    site = next(iter(settings.sites))
    other: SiteIndex = "own" if settings.site_index == "shared" else "shared"
    moving = settings.model_copy(update={"sites": settings.sites | {site: SiteSettings(index=other)}})
    async with KafkaSender(settings) as sender:
        await sender.send_many([Outgoing(CHANGES, (change := saved(site, "pool")).page_key, change)])
    async with Elastic(str(settings.elasticsearch), settings) as elastic:
        await elastic.indexes.ensure(site, embedder="fake", model="fake-4", dims=4, chunker="content-512-20")
        assert [one.outcome for one in await rebuild_fleet(settings, Fleet(site, 1, again=False), WANTED)] == ["live"]
        assert [one.outcome for one in await rebuild_fleet(moving, Fleet(site, 1, again=False), WANTED)] == ["live"]
        live = await elastic.indexes.now(site)
        assert live is not None
        assert (live.generation, live.shared is not None) == (3, other == "shared")
        [status] = await elastic.site_statuses([site])
        assert (status.pages, status.problem) == (1, None)
        previous = next(info for info in await elastic.indexes.generations(site) if info.generation == 2)
        assert (previous.shared is not None) == (other == "own"), "it is kept for a rollback"
