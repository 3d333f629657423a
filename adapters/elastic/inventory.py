"""Lists every document of an index at one point in time, in batches, without texts and vectors.

Documents come in the order of the shards, which needs no sorting and only the memory of a batch.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from elasticsearch import AsyncElasticsearch, NotFoundError

from adapters.elastic.client import explained
from adapters.elastic.indexes import ElasticIndexes
from adapters.elastic.reading import Hit, PointInTime, batches, point_in_time
from adapters.elastic.writer import Write, Writer
from pipelines.operate.audit.index_diff import ChunkDocument, HeadDocument, WrongDocument
from pipelines.runtime.errors import WrongUse
from pipelines.runtime.indexes import IndexGone, IndexInfo

BATCH = 2_500  # documents; about 1 MB of answer, parsed on the loop in 15 ms
REQUEST_TIMEOUT = 60.0  # seconds; the first batch after a large import waits for its refresh
FIELDS = [{"field": name} for name in ("page_key", "field", "ord", "revision", "model", "chunker", "state")]
HEAD_SOURCE = {"includes": ["head.counts", "head.model", "head.chunker"]}
ANSWER = ["pit_id", *(f"hits.hits.{name}" for name in ("_id", "_version", "fields", "_source", "sort"))]
HEADS = {"term": {"kind": "head"}}


class NoSuchIndex(WrongUse):
    """The site has no index of this name."""

    code = "no-such-index"


class ElasticInventories:
    """Opens the inventory of a site's index."""

    def __init__(self, es: AsyncElasticsearch, indexes: ElasticIndexes, writer: Writer) -> None:
        self._es = es
        self._indexes = indexes
        self._writer = writer

    async def of(self, site: str, name: str | None = None) -> ElasticInventory | None:
        """The index of this name, by default the live one; None when the site never had one.

        Raises:
            NoSuchIndex. IndexUnfit, IndexGone: the index cannot be read. ElasticsearchDown.
        """
        if name is None:
            info = await self._indexes.now(site)
            if info is None:
                await self._indexes.explain_absence(site)
                return None
            return ElasticInventory(self._es, self._writer, info)
        found = {info.name: info for info in await self._indexes.generations(site)}
        if name not in found:
            raise NoSuchIndex(f"site {site} has no index {name!r}; it has: {', '.join(found) or 'none'}")
        return ElasticInventory(self._es, self._writer, found[name])


class ElasticInventory:
    """Reads the documents of one index, and deletes wrong ones."""

    def __init__(self, es: AsyncElasticsearch, writer: Writer, info: IndexInfo) -> None:
        self._es = es.options(request_timeout=REQUEST_TIMEOUT)
        self._writer = writer
        self._info = info

    @property
    def name(self) -> str:
        return self._info.name

    @property
    def model(self) -> str:
        return self._info.model

    @property
    def chunker(self) -> str:
        return self._info.chunker

    async def count(self) -> int:
        """The number of searchable documents. Raises: IndexGone, ElasticsearchDown."""
        with explained(f"counting documents of {self.name}"):
            try:
                return int((await self._es.count(index=self.name))["count"])
            except NotFoundError:
                raise self._gone from None

    async def read(
        self, page_keys: Sequence[str] | None = None
    ) -> AsyncGenerator[tuple[list[HeadDocument], list[ChunkDocument]], None]:
        """All documents of these pages (default: of all) that were written before this call.

        Args:
            page_keys: at most 65,536 (Elasticsearch's limit of terms).

        Raises:
            IndexGone, ElasticsearchDown.
        """
        pages = [] if page_keys is None else [{"terms": {"page_key": list(page_keys)}}]
        heads = {"bool": {"filter": [HEADS, *pages]}}
        others = {"bool": {"must_not": [HEADS], "filter": pages}}
        async with point_in_time(self._es, self.name, absent=self._gone) as point:
            async with aclosing(self._scan(point, heads, HEAD_SOURCE)) as batches_of_heads:
                async for hits in batches_of_heads:
                    yield [_head(hit) for hit in hits], []
            async with aclosing(self._scan(point, others, False)) as batches_of_chunks:
                async for hits in batches_of_chunks:
                    yield [], [_chunk(hit) for hit in hits]

    async def delete(self, documents: Sequence[WrongDocument]) -> None:
        """Delete documents in this order, except those written again meanwhile. Raises: ElasticsearchDown."""
        await self._writer.write([Write(self._info.write_alias, one.id, one.version, None) for one in documents])

    def _scan(
        self, point: PointInTime, query: Mapping[str, Any], source: Mapping[str, Any] | bool
    ) -> AsyncGenerator[list[Hit], None]:
        return batches(
            self._es,
            f"reading {self.name}",
            BATCH,
            absent=self._gone,
            point=point,
            query=query,
            source=source,
            docvalue_fields=FIELDS,
            version=True,
            track_total_hits=False,
            allow_partial_search_results=False,
            filter_path=ANSWER,
        )

    @property
    def _gone(self) -> IndexGone:
        return IndexGone(f"index {self.name} was deleted while it was read")


def _head(hit: dict[str, Any]) -> HeadDocument:
    fields = hit.get("fields", {})
    body = hit.get("_source", {}).get("head") or {}
    return HeadDocument(
        id=hit["_id"],
        version=hit["_version"],
        page_key=_first(fields, "page_key", hit["_id"]),
        revision=_first(fields, "revision", hit["_version"]),
        deleted=_first(fields, "state", "") == "deleted",
        promised=body.get("counts") or {},
        model=body.get("model") or "",
        chunker=body.get("chunker") or "",
    )


def _chunk(hit: dict[str, Any]) -> ChunkDocument:
    fields = hit.get("fields", {})
    return ChunkDocument(
        id=hit["_id"],
        version=hit["_version"],
        page_key=_first(fields, "page_key", hit["_id"]),
        revision=_first(fields, "revision", hit["_version"]),
        field=_first(fields, "field", ""),
        ord=_first(fields, "ord", -1),
        model=_first(fields, "model", ""),
        chunker=_first(fields, "chunker", ""),
    )


def _first(fields: dict[str, list[Any]], name: str, default: Any) -> Any:
    values = fields.get(name)
    return values[0] if values else default
