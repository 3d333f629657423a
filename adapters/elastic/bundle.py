"""All adapters of Elasticsearch for a process, over one connection.

Offsets of sites' records by topic, in an index that may be deleted at any time: then whole topics are read.

    {topic}                          the offsets up to which the topic is covered; replaced by compare-and-set
    {topic}/{partition}/{site}/{at}  a stretch of the site's records from offset `at` on; its version is its end

Both ids begin with the broker's id of the topic. Stretches are written and refreshed first, then the covered offsets.
A process that loses the second write does no harm: its stretches are correct, and of two stretches with the same start
the longer one stays.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Self

from elasticsearch import AsyncElasticsearch

from adapters.elastic.client import ElasticsearchDown, connect, explained
from adapters.elastic.indexes import PLACES, ElasticIndexes
from adapters.elastic.pages import ElasticPages
from adapters.elastic.reading import batches, sources
from adapters.elastic.rebuilds import ElasticRebuilds
from adapters.elastic.search import SiteSearch
from adapters.elastic.settings import ElasticSettings
from adapters.elastic.site_statuses import SiteStatuses
from adapters.elastic.system_index import SystemIndex, version_of
from adapters.elastic.tenancy import Tenancy
from adapters.elastic.writer import Write, Writer
from pipelines.operate.record_places import Covered, NotedRange
from pipelines.operate.site_log import PlacesWrong
from pipelines.runtime.record import Lane
from schemas.http import SiteStatus

AT_ONCE = 500  # stretches read at once, of some 100 bytes each for a small site


class ElasticPlaces(SystemIndex):
    """Stores stretches of all topics and sites: a pipelines.operate.record_places.Places."""

    index = PLACES

    def __init__(self, es: AsyncElasticsearch, indexes: ElasticIndexes, writer: Writer) -> None:
        super().__init__(es, indexes)
        self._writer = writer

    async def covered(self, topic: str) -> Covered:
        """Raises: ElasticsearchDown."""
        if (found := await self._get(f"looking up what is known of topic {topic}", topic)) is None:
            return Covered({})
        ends = {int(partition): end for partition, end in found["_source"]["covered"].items()}
        return Covered(ends, version_of(found))

    async def of_site(self, topic: str, site: str, partition: int) -> AsyncGenerator[NotedRange, None]:
        """Raises: PlacesWrong: the index was deleted. ElasticsearchDown."""
        wanted = [{"term": {"topic": topic}}, {"term": {"site": site}}, {"term": {"partition": partition}}]
        found = batches(
            self._es,
            f"looking up where records of site {site} stand",
            AT_ONCE,
            absent=PlacesWrong(f"{PLACES} was deleted"),
            index=PLACES,
            query={"bool": {"filter": wanted}},
            sort=["start"],
            source_includes=["start", "end", "runs"],
            filter_path=["hits.hits._source", "hits.hits.sort"],
            allow_partial_search_results=False,
        )
        async with aclosing(sources(found)) as stretches:
            async for source in stretches:
                runs = [(first, last) for first, last in source["runs"]["of"]]
                yield NotedRange(site, partition, source["start"], source["end"], runs)

    async def add(
        self, topic: str, stretches: Sequence[NotedRange], covered: Covered, ends: Mapping[int, int]
    ) -> Covered | None:
        """Raises: ElasticsearchDown."""
        if not covered.ends:
            await self._indexes.ensure_system(PLACES)
        await self._writer.write([_write(topic, stretch) for stretch in stretches])
        with explained(f"refreshing {PLACES}"):
            await self._es.indices.refresh(index=PLACES)
        now = {**covered.ends, **ends}
        return await self._cover(topic, now, covered)

    async def put(self, topic: str, stretch: NotedRange) -> None:
        """Raises: ElasticsearchDown."""
        await self._writer.write([_write(topic, stretch)])

    async def forget(self, topic: str) -> None:
        """Raises: ElasticsearchDown."""
        while (covered := await self.covered(topic)).ends:
            await self._cover(topic, {}, covered)

    async def _cover(self, topic: str, ends: Mapping[int, int], covered: Covered) -> Covered | None:
        document = {"covered": {str(partition): end for partition, end in ends.items()}}
        write = Write(PLACES, topic, 0, document, covered.token or "nothing", aliased=False)
        [written] = await self._writer.write([write])
        return None if written.stale else await self.covered(topic)


def _write(topic: str, stretch: NotedRange) -> Write:
    id = f"{topic}/{stretch.partition}/{stretch.site}/{stretch.start}"
    if not stretch.runs:
        return Write(PLACES, id, stretch.end, None, aliased=False)
    document = {
        "topic": topic,
        "site": stretch.site,
        "partition": stretch.partition,
        "start": stretch.start,
        "end": stretch.end,
        "runs": {"of": stretch.runs},
    }
    return Write(PLACES, id, stretch.end, document, aliased=False)


PING_TIMEOUT = 3.0  # seconds


class Elastic:
    """`async with Elastic(url, settings) as elastic: ...`; `lane`: of its writes."""

    def __init__(self, url: str, settings: ElasticSettings, lane: Lane = "save") -> None:
        self.es = connect(url, settings)
        self.writer = Writer(self.es, lane)
        tenancy = Tenancy(self.es, self.writer)
        self.indexes = ElasticIndexes(
            self.es, settings.shares_index, tenancy, shards=settings.shards, replicas=settings.replicas
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
