"""A page as it stands in the live index: its chunks, in order, for whoever looks after it."""

from __future__ import annotations

from collections.abc import Iterable

from elasticsearch import AsyncElasticsearch, NotFoundError

from adapters.elastic.client import explained
from pipelines.runtime.indexes import alias
from schemas.http import IndexedChunk, IndexedPage
from schemas.page import FIELDS

MAX_CHUNKS = 500  # that are read; a page of 300 KB has some 150


class ElasticPageView:
    """Reads live indexes. One per process."""

    def __init__(self, es: AsyncElasticsearch) -> None:
        self._es = es

    async def page(self, site: str, page_key: str, groups: Iterable[str] = ()) -> IndexedPage:
        """Of a page that nobody can find, nothing. Raises: ElasticsearchDown."""
        with explained(f"reading {page_key}"):
            try:
                answer = await self._es.search(
                    index=alias(site),
                    query={"bool": {"filter": [{"term": {"page_key": page_key}}, {"term": {"kind": "chunk"}}]}},
                    sort=["field", "ord"],
                    size=MAX_CHUNKS,
                    source_includes=[*IndexedChunk.model_fields, "groups"],
                    track_total_hits=True,
                )
            except NotFoundError:  # the site has no page yet
                return IndexedPage(chunks=(), total=0)
        found = [hit["_source"] for hit in answer["hits"]["hits"]]
        mine = set(groups)
        seen = [source for source in found if "groups" not in source or mine.intersection(source["groups"])]
        chunks = [IndexedChunk(**{name: source[name] for name in IndexedChunk.model_fields}) for source in seen]
        chunks.sort(key=lambda chunk: (FIELDS.index(chunk.field), chunk.ord))
        total = answer["hits"]["total"]["value"]
        return IndexedPage(chunks=tuple(chunks), total=total, hidden=len(found) - len(seen))
