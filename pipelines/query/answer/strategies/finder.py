"""Finder: the search of the retrieve stage, for strategies."""

from __future__ import annotations

from dataclasses import replace

from pipelines.query.live.site_prompts import SitePrompts
from pipelines.query.retrieve.retrieve import retrieve
from pipelines.query.search.ports import SearchIndex
from pipelines.query.search.search import Searcher
from pipelines.query.search.widen import passages
from pipelines.query.settings import QuerySettings
from schemas.query import Rephrased, Retrieved, Source

PAGE_CHARS = 8_000  # of a page that is looked up


class PageFinder:
    """One per process."""

    def __init__(
        self, searcher: Searcher, chunks: SearchIndex, settings: QuerySettings, site_prompts: SitePrompts
    ) -> None:
        self._searcher = searcher
        self._chunks = chunks
        self._settings = settings
        self._prompts = site_prompts

    async def find(self, retrieved: Retrieved, query: str) -> tuple[Source, ...]:
        asked = Rephrased(request=retrieved.request, question=query, mode="semantic")
        searcher = await self._searcher_for(retrieved)
        glossary = self._prompts.of(retrieved.request.site).glossary
        return (await retrieve(asked, searcher, self._chunks, self._settings, glossary=glossary)).sources

    async def page(self, retrieved: Retrieved, name: str) -> tuple[Source, ...]:
        request = retrieved.request
        searcher = (await self._searcher_for(retrieved)).within(request.labels)
        hits = await searcher.hits(request.site, name, kind="hybrid", size=1, groups=request.groups)
        if not hits:
            return ()
        [hit] = hits
        content = await self._chunks.field(hit.index, hit.page_key, "content")
        text = [replace(chunk, score=hit.score) for chunk in content if chunk.revision == hit.revision]
        # All chunks count as hits: the strategy reads the page from its beginning.
        return passages(text or hits, (), PAGE_CHARS)

    async def _searcher_for(self, retrieved: Retrieved) -> Searcher:
        """The searcher of the index that the sources are from. Raises: NoTrialIndex."""
        if retrieved.index is None:
            return self._searcher
        return await self._searcher.on(retrieved.request.site, retrieved.index)
