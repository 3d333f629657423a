"""Vectors of whole pages, from those of their chunks, to compare pages with questions.

Chunks are read page by page in batches, and one vector a page is kept. This needs 10 MB for a batch and, with 384
dimensions, 1.5 KB a page.
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
# Chunks of each field: the beginning shows what a page is about, and a page of 300 KB has 150 chunks.
FIRST_CHUNKS = 8
SOURCE = ["page_key", "page_id", "lang", "title", "url", "field", "ord", "embedding"]
ORDER = ["page_key", "field", "ord"]
EXACT_TO = 40_000  # pages; Elasticsearch's limit for exact counts

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
        """The chunks of each page."""
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
    """The page by its first chunk before the content, since chunks of attachments have their own title and address."""
    first = min(chunks, key=lambda chunk: (FIELDS.index(chunk["field"]), chunk["ord"]))
    return SitePage(first["page_id"], first["lang"], first["title"], first["url"])


def _middle(chunks: Sequence[Chunk]) -> Vector32:
    total: Vector32 = np.sum([np.asarray(chunk["embedding"], dtype=np.float32) for chunk in chunks], axis=0)
    length = float(np.linalg.norm(total))
    return total / length if length else total
