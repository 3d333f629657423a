"""Inventory: every document of one index as of one moment, in batches, without its text and vector.

Read from a point in time in the order of the shards, which costs Elasticsearch no sorting and us no memory but a batch.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from elasticsearch import AsyncElasticsearch, NotFoundError

from adapters.elastic.client import ElasticsearchDown, explained
from adapters.elastic.indexes import Indexes
from adapters.elastic.writer import Write, Writer
from pipelines.operate.audit.index_diff import ChunkDocument, Document, HeadDocument
from pipelines.runtime.errors import WrongUse
from pipelines.runtime.indexes import IndexGone, IndexInfo

BATCH = 2_500  # documents; about 1 MB of answer, parsed on the loop in 15 ms
KEEP_ALIVE = "2m"  # between two batches
REQUEST_TIMEOUT = 60.0  # seconds; the first batch after a large import waits for its refresh
FIELDS = [{"field": name} for name in ("page_key", "field", "ord", "revision", "model", "chunker", "state")]
HEAD_SOURCE = {"includes": ["head.counts", "head.model", "head.chunker"]}
ANSWER = ["pit_id", *(f"hits.hits.{name}" for name in ("_id", "_version", "fields", "_source", "sort"))]
HEADS = {"term": {"kind": "head"}}


class NoSuchIndex(WrongUse):
    """The site has no index of this name."""

    code = "no-such-index"


class Inventories:
    """Opens the inventory of a site's index."""

    def __init__(self, es: AsyncElasticsearch, indexes: Indexes, writer: Writer) -> None:
        self._es = es
        self._indexes = indexes
        self._writer = writer

    async def of(self, site: str, name: str | None = None) -> Inventory | None:
        """The index of this name, by default the live one; None when the site never had one.

        Raises:
            NoSuchIndex. IndexUnfit, IndexGone: there is something, but it cannot be read. ElasticsearchDown.
        """
        if name is None:
            info = await self._indexes.now(site)
            if info is None:
                await self._indexes.explain_absence(site)
                return None
            return Inventory(self._es, self._writer, info)
        found = {info.name: info for info in await self._indexes.generations(site)}
        if name not in found:
            raise NoSuchIndex(f"site {site} has no index {name!r}; it has: {', '.join(found) or 'none'}")
        return Inventory(self._es, self._writer, found[name])


class Inventory:
    """What one index holds; and deletes what it should not."""

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
        """Documents that can be found. Raises: IndexGone, ElasticsearchDown."""
        with self._explained("counting documents of"):
            return int((await self._es.count(index=self.name))["count"])

    async def read(
        self, page_keys: Sequence[str] | None = None
    ) -> AsyncGenerator[tuple[list[HeadDocument], list[ChunkDocument]], None]:
        """Everything written before this call, of these pages (default: of all).

        Args:
            page_keys: at most 65,536 (Elasticsearch's limit of terms).

        Raises:
            IndexGone, ElasticsearchDown.
        """
        pages = [] if page_keys is None else [{"terms": {"page_key": list(page_keys)}}]
        async with self._point() as point:
            heads = {"bool": {"filter": [HEADS, *pages]}}
            async for hits in self._scan(point, heads, HEAD_SOURCE):
                yield [_head(hit) for hit in hits], []
            others = {"bool": {"must_not": [HEADS], "filter": pages}}
            async for hits in self._scan(point, others, False):
                yield [], [_chunk(hit) for hit in hits]

    async def delete(self, documents: Sequence[Document]) -> None:
        """Delete documents, in this order, but none that was written again since. Raises: ElasticsearchDown."""
        await self._writer.write([Write(self._info.write_alias, one.id, one.version, None) for one in documents])

    @asynccontextmanager
    async def _point(self) -> AsyncIterator[_Point]:
        with self._explained("opening"):
            await self._es.indices.refresh(index=self.name)
            opened = await self._es.open_point_in_time(index=self.name, keep_alive=KEEP_ALIVE)
        point = _Point(opened["id"])
        try:
            yield point
        finally:
            with suppress(ElasticsearchDown), self._explained("closing"):  # it ends by itself, too
                await self._es.options(ignore_status=404).close_point_in_time(id=point.id)

    async def _scan(
        self, point: _Point, query: Mapping[str, Any], source: Mapping[str, Any] | bool
    ) -> AsyncIterator[list[dict[str, Any]]]:
        after: list[Any] | None = None
        while True:
            with self._explained("reading"):
                answer = await self._es.search(
                    pit={"id": point.id, "keep_alive": KEEP_ALIVE},
                    query=query,
                    sort=[{"_shard_doc": "asc"}],
                    search_after=after,
                    size=BATCH,
                    source=source,
                    docvalue_fields=FIELDS,
                    version=True,
                    track_total_hits=False,
                    allow_partial_search_results=False,
                    filter_path=ANSWER,
                )
            point.id = answer.get("pit_id", point.id)
            hits: list[dict[str, Any]] = answer.get("hits", {}).get("hits", [])
            if hits:
                yield hits
            if len(hits) < BATCH:
                return
            after = hits[-1]["sort"]

    @contextmanager
    def _explained(self, doing: str) -> Iterator[None]:
        with explained(f"{doing} {self.name}"):
            try:
                yield
            except NotFoundError as err:
                raise IndexGone(f"index {self.name} was deleted while it was read") from err


@dataclass
class _Point:
    """A point in time; each answer may name it anew."""

    id: str


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
