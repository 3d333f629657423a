"""Vectors of whole pages, from those of their chunks: what a page speaks of, for who compares pages with questions.

Read in the order of the pages, a batch of chunks at a time; kept of a page is one vector. So the memory is that of a
batch and of a vector a page: 10 MB and, with 384 dimensions, 1.5 KB a page.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from typing import Any

import numpy as np
from elasticsearch import AsyncElasticsearch, NotFoundError

from adapters.elastic.client import explained
from adapters.elastic.reading import batches, sources
from adapters.elastic.search import visible_to
from pipelines.query.log.ports import SitePage, SitePages
from pipelines.runtime.embedder import Matrix32
from pipelines.runtime.indexes import alias
from schemas.ingest import Vector32
from schemas.page import FIELDS

BATCH = 500  # chunks; some 2 MB of answer, parsed on the loop in 30 ms
# Chunks of each field: what a page is about stands at its beginning, and a page of 300 KB has 150.
FIRST_CHUNKS = 8
SOURCE = ["page_key", "page_id", "lang", "title", "url", "field", "ord", "embedding"]
ORDER = ["page_key", "field", "ord"]
EXACT_TO = 40_000  # pages, up to which Elasticsearch counts them exactly; its limit

Chunk = dict[str, Any]


class ElasticPageVectors:
    """Reads live indexes. One per process."""

    def __init__(self, es: AsyncElasticsearch) -> None:
        self._es = es

    async def vectors(self, site: str, model: str, dims: int, groups: Iterable[str] | None, most: int) -> SitePages:
        """Raises: ElasticsearchDown."""
        visible = None if groups is None else visible_to(groups)
        pages: list[SitePage] = []
        rows: list[Vector32] = []
        cut = False
        async with aclosing(self._pages(site, model, visible)) as every:
            async for chunks in every:
                if len(pages) == most:
                    cut = True
                    break
                pages.append(_page(chunks))
                rows.append(_middle(chunks))
        vectors: Matrix32 = np.stack(rows) if rows else np.empty((0, dims), dtype=np.float32)
        hidden = 0 if visible is None else await self._hidden(site, visible)
        return SitePages(tuple(pages), vectors, hidden, cut)

    async def _pages(self, site: str, model: str, visible: dict[str, Any] | None) -> AsyncGenerator[list[Chunk], None]:
        """The chunks of one page after the other."""
        own: list[Chunk] = []
        async for chunk in self._chunks(site, model, visible):
            if own and own[0]["page_key"] != chunk["page_key"]:
                yield own
                own = []
            own.append(chunk)
        if own:
            yield own

    def _chunks(self, site: str, model: str, visible: dict[str, Any] | None) -> AsyncGenerator[Chunk, None]:
        first: list[dict[str, Any]] = [
            {"term": {"kind": "chunk"}},
            {"term": {"model": model}},
            {"range": {"ord": {"lt": FIRST_CHUNKS}}},
        ]
        first += [visible] if visible else []
        chunks = batches(
            self._es,
            f"reading vectors of site {site}",
            BATCH,
            absent=None,  # the site has no page yet
            index=alias(site),
            query={"bool": {"filter": first}},
            sort=ORDER,
            source={"includes": SOURCE, "exclude_vectors": False},
            track_total_hits=False,
        )
        return sources(chunks)

    async def _hidden(self, site: str, visible: dict[str, Any]) -> int:
        with explained(f"counting pages of site {site}"):
            try:
                answer = await self._es.search(
                    index=alias(site),
                    size=0,
                    query={"bool": {"filter": [{"term": {"kind": "chunk"}}], "must_not": [visible]}},
                    aggs={"pages": {"cardinality": {"field": "page_key", "precision_threshold": EXACT_TO}}},
                )
            except NotFoundError:
                return 0
        return int(answer["aggregations"]["pages"]["value"])


def _page(chunks: Sequence[Chunk]) -> SitePage:
    """By its first chunk before the content: chunks of attachments stand under a title and address of their own."""
    first = min(chunks, key=lambda chunk: (FIELDS.index(chunk["field"]), chunk["ord"]))
    return SitePage(first["page_id"], first["lang"], first["title"], first["url"])


def _middle(chunks: Sequence[Chunk]) -> Vector32:
    total: Vector32 = np.sum([np.asarray(chunk["embedding"], dtype=np.float32) for chunk in chunks], axis=0)
    length = float(np.linalg.norm(total))
    return total / length if length else total
