"""What is wrong with a running system is said, not shown as quiet."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from adapters.kafka import ensure_topics
from pipelines.runtime.indexes import alias, index_name
from schemas.ingest import ReceiptEvent
from tests.engine_fixture import Servers
from tests.making import change
from wiring.clients import Clients
from wiring.settings import Settings, SiteSettings

pytestmark = pytest.mark.engine


async def test_an_unfit_index_and_a_missing_topic_are_named(engine: Servers) -> None:
    site, sound = f"t{uuid4().hex[:12]}", f"t{uuid4().hex[:12]}"
    settings = Settings(
        kafka=engine.kafka,
        elasticsearch=engine.elasticsearch,
        topic_prefix=f"{site}.",
        partitions=1,
        sites={site: SiteSettings(), sound: SiteSettings()},
    )
    async with Clients(settings) as clients:
        indexes, es = clients.elastic.indexes, clients.elastic.es
        for number in (1, 2):
            await indexes.create(site, number, "fake", "fake-4", 4, "content-512-20", live=True)
        try:
            found = await clients.status().status()
            assert (found.kafka, found.elasticsearch) == (True, True)
            problems = {one.site: one.problem for one in found.sites}
            assert problems[sound] is None
            assert f"{alias(site)} points to 2 indexes" in (problems[site] or "")
            assert f"topic {site}.cms.changes is not there; `pagewire topics` makes it" in found.problems
            await ensure_topics(engine.kafka, settings)
            assert (await clients.status().status()).problems == ()
            async with Clients(settings.model_copy(update={"replication": 3})) as wanting:
                problems = (await wanting.status().status()).problems
            assert f"topic {site}.cms.changes has 1 of the 3 copies" in " ".join(problems)
        finally:
            for number in (1, 2):
                await es.indices.delete(index=index_name(site, number))


async def test_a_deleted_index_is_no_quiet_site(engine: Servers) -> None:
    site = f"t{uuid4().hex[:12]}"
    settings = Settings(kafka=engine.kafka, elasticsearch=engine.elasticsearch, sites={site: SiteSettings()})
    async with Clients(settings) as clients:
        assert (await clients.elastic.site_status(site)).problem is None  # it never had one
        event = ReceiptEvent(change=change(1, site=site), state="searchable", at=datetime.now(UTC))
        await clients.elastic.pages.put_receipt(event)
        [found] = (await clients.status().status()).sites
        assert f"pagewire rebuild {site} --from embeddings --promote" in (found.problem or "")


async def test_the_servers_tell_the_time(engine: Servers) -> None:
    async with Clients(Settings(kafka=engine.kafka, elasticsearch=engine.elasticsearch)) as clients:
        assert abs(await clients.elastic.time() - datetime.now(UTC)) < timedelta(seconds=5)
        assert abs((await clients.clock())() - datetime.now(UTC)) < timedelta(seconds=5)
