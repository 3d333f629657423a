"""Offsets of sites' records by topic, in an index that may be deleted at any time: then whole topics are read.

    {topic}                          the offsets up to which the topic is covered; replaced by compare-and-set
    {topic}/{partition}/{site}/{at}  a stretch of the site's records from offset `at` on; its version is its end

Both ids begin with the broker's id of the topic. Stretches are written and refreshed first, then the covered offsets.
A process that loses the second write does no harm: its stretches are correct, and of two stretches with the same start
the longer one stays.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing

from elasticsearch import AsyncElasticsearch

from adapters.elastic.client import explained
from adapters.elastic.indexes import PLACES, ElasticIndexes
from adapters.elastic.reading import batches, sources
from adapters.elastic.system_index import SystemIndex, version_of
from adapters.elastic.writer import Write, Writer
from pipelines.operate.record_places import Covered, NotedRange
from pipelines.operate.site_log import PlacesWrong

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
