"""What is wrong with a running system is said, not shown as quiet."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from elasticsearch import AsyncElasticsearch

from adapters.elastic.indexes import RECEIPTS
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
                short = (await wanting.status().status()).problems
            assert f"topic {site}.cms.changes has 1 of the 3 copies" in " ".join(short)
        finally:
            for number in (1, 2):
                await es.indices.delete(index=index_name(site, number))


async def test_a_deleted_index_is_no_quiet_site(engine: Servers) -> None:
    site = f"t{uuid4().hex[:12]}"
    settings = Settings(kafka=engine.kafka, elasticsearch=engine.elasticsearch, sites={site: SiteSettings()})
    async with Clients(settings) as clients:
        assert (await clients.elastic.site_statuses([site]))[0].problem is None  # it never had one
        event = ReceiptEvent(change=change(1, site=site), state="searchable", at=datetime.now(UTC))
        await clients.elastic.indexes.ensure_system(RECEIPTS)
        await clients.elastic.pages.put_receipt(event)
        [found] = (await clients.status().status()).sites
        assert f"pagewire index rebuild {site} --from embeddings --promote" in (found.problem or "")


async def test_many_sites_are_looked_at_together_and_told_apart(
    engine: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = f"t{uuid4().hex[:12]}"
    sites = [base, f"{base}-hall", f"{base}-000001", f"{base}-new"]
    async with Clients(Settings(kafka=engine.kafka, elasticsearch=engine.elasticsearch)) as clients:
        indexes, es = clients.elastic.indexes, clients.elastic.es
        names = [index_name(site, 1) for site in sites[:3]]
        await indexes.ensure_system(RECEIPTS)
        try:
            for site in sites[:3]:
                await indexes.create(site, 1, "fake", f"fake-{site}", 4, "content-512-20", live=site != sites[2])
            for count, name in enumerate(names[:2], start=1):
                documents = [{"kind": "head", "state": "live"}, *[{"kind": "chunk"}] * count, {"kind": "head"}]
                for document in documents:
                    await es.index(index=name, document=document, refresh=True)
            event = ReceiptEvent(change=change(1, site=sites[1]), state="searchable", at=datetime.now(UTC))
            await clients.elastic.pages.put_receipt(event)
            await es.indices.refresh(index=RECEIPTS)
            asked = Counted(monkeypatch, es)
            found = await clients.elastic.site_statuses(sites)
            assert [(one.site, one.pages, one.chunks, one.embedder) for one in found] == [
                (base, 1, 1, f"fake-{base}"),
                (f"{base}-hall", 1, 2, f"fake-{base}-hall"),
                (f"{base}-000001", 0, 0, None),
                (f"{base}-new", 0, 0, None),
            ]
            assert [one.freshness_p95_ms is None for one in found] == [True, False, True, True]
            assert f"has {names[2]}, but its alias" in (found[2].problem or "")
            assert [found[n].problem for n in (0, 1, 3)] == [None] * 3
            assert asked.requests == 5  # two more than three: the new site's receipts are looked for anew
        finally:
            for name in names:
                await es.indices.delete(index=name)


class Counted:
    """Counts the requests to Elasticsearch from now on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, es: AsyncElasticsearch) -> None:
        self.requests = 0
        perform = es.transport.perform_request

        async def counted(*args: Any, **kwargs: Any) -> Any:
            self.requests += 1
            return await perform(*args, **kwargs)

        monkeypatch.setattr(es.transport, "perform_request", counted)


async def test_the_servers_tell_the_time(engine: Servers) -> None:
    async with Clients(Settings(kafka=engine.kafka, elasticsearch=engine.elasticsearch)) as clients:
        assert abs(await clients.elastic.time() - datetime.now(UTC)) < timedelta(seconds=5)
        assert abs((await clients.clock())() - datetime.now(UTC)) < timedelta(seconds=5)
