"""All adapters of Elasticsearch for a process, over one connection."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Self

from adapters.elastic.client import ElasticsearchDown, connect, explained
from adapters.elastic.indexes import ElasticIndexes
from adapters.elastic.pages import ElasticPages
from adapters.elastic.places import ElasticPlaces
from adapters.elastic.rebuilds import ElasticRebuilds
from adapters.elastic.search import SiteSearch
from adapters.elastic.settings import ElasticSettings
from adapters.elastic.site_statuses import SiteStatuses
from adapters.elastic.tenancy import Tenancy
from adapters.elastic.writer import Writer
from pipelines.runtime.record import Lane
from schemas.http import SiteStatus

PING_TIMEOUT = 3.0  # seconds


class Elastic:
    """`async with Elastic(url, settings) as elastic: ...`; `lane`: of its writes."""

    def __init__(self, url: str, settings: ElasticSettings, lane: Lane = "save") -> None:
        self.es = connect(url, settings)
        self.writer = Writer(self.es, lane)
        tenancy = Tenancy(self.es, self.writer)
        self.indexes = ElasticIndexes(
            self.es, settings.placement, tenancy, shards=settings.shards, replicas=settings.replicas
        )
        self.pages = ElasticPages(self.es, self.indexes, self.writer)
        self.rebuilds = ElasticRebuilds(self.es, self.indexes)
        self.places = ElasticPlaces(self.es, self.indexes, self.writer)
        self.search = SiteSearch(self.es, self.indexes)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def ping(self) -> None:
        """Raises: ElasticsearchDown: it does not answer, or not all primaries are allocated yet."""
        with explained("asking for the cluster's health"):
            health = await self.es.options(request_timeout=PING_TIMEOUT).cluster.health()
        if health["status"] == "red":
            raise ElasticsearchDown("Elasticsearch: not all primary shards are there yet")

    async def time(self) -> datetime:
        """The clock of the elected master, which is the same for all gateways.

        Raises:
            ElasticsearchDown, ElasticsearchRefused.
        """
        with explained("asking for the time"):
            stats = await self.es.options(request_timeout=PING_TIMEOUT).nodes.stats(
                node_id="_master", metric="os", filter_path="nodes.*.timestamp"
            )
        for master in stats.get("nodes", {}).values():
            return datetime.fromtimestamp(master["timestamp"] / 1000, UTC)
        raise ElasticsearchDown("Elasticsearch: no master is elected")

    async def site_statuses(self, sites: Sequence[str]) -> list[SiteStatus]:
        """Pages, chunks, freshness and problems of each of these sites. Raises: ElasticsearchDown."""
        return await SiteStatuses(self.es, self.indexes).of(sites)

    async def aclose(self) -> None:
        await self.writer.aclose()
        await self.es.close()
