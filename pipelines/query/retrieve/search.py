"""Search: hits for a question, best first, from both kinds of search over all five fields.

question ─┬─▶ by vector ───┬─▶ fuse ─▶ the best, and what is near them, are read ─▶ hits
          └─▶ by keywords ─┘
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

from pipelines.query.retrieve.fuse import fuse, known_share
from pipelines.query.retrieve.ports import (
    Candidate,
    Candidates,
    ChunkKey,
    Floors,
    Hit,
    QueryModelOutdated,
    SearchEmbedder,
    SearchEmbedders,
    SearchIndex,
)
from pipelines.query.retrieve.widen import nearest
from pipelines.query.settings import QuerySettings
from schemas.http import SearchHit, SearchKind

# Both lists are this deep before they are fused: a hit that is 20th in one may be the best of both together.
DEPTH = 30
# Read at once, in so many times the characters that an answer may read: some chunks are short, some are not there.
ROOM = 1.5


@dataclass(frozen=True)
class Retrieval:
    """The hits and all that the search knows about them."""

    hits: list[Hit]  # fused, best first
    candidates: Candidates
    model: SearchEmbedder | None  # None: searched by keywords alone
    near: list[Hit]  # the hits' neighbours that an answer will most likely read


def scored(candidates: Iterable[Candidate], read: Mapping[ChunkKey, Hit]) -> list[Hit]:
    """The candidates that could be read, with their figures; one may be gone since it was found."""
    return [
        replace(read[each.place], cosine=each.cosine, bm25=each.bm25, score=each.score)
        for each in candidates
        if each.place in read
    ]


class Searcher:
    """One per process."""

    def __init__(self, index: SearchIndex, models: SearchEmbedders, settings: QuerySettings) -> None:
        self._index = index
        self._models = models
        self._settings = settings

    async def hits(self, site: str, text: str, *, kind: SearchKind, size: int, groups: Iterable[str] = ()) -> list[Hit]:
        """The best chunks, at most `size`.

        Raises:
            UnknownSite, Retryable.
        """
        return (await self.find(site, text, kind=kind, size=size, groups=groups)).hits

    async def find(
        self, site: str, text: str, *, kind: SearchKind, size: int, groups: Iterable[str] = (), around: int = 0
    ) -> Retrieval:
        """The best chunks, at most `size`, and what they were chosen from.

        Args:
            around: chunks on each side of a hit that may be read with it.

        Raises:
            UnknownSite, Retryable.
        """
        self._settings.site(site)
        try:
            return await self._find(site, text, kind, size, groups, around)
        except QueryModelOutdated:  # a rebuild was promoted between two looks at the index
            return await self._find(site, text, kind, size, groups, around)

    async def _find(
        self, site: str, text: str, kind: SearchKind, size: int, groups: Iterable[str], around: int
    ) -> Retrieval:
        model, found = await self._candidates(site, text, kind, max(size, DEPTH), groups)
        known = known_share(found.terms, found.total)
        best = fuse(found.dense, found.keyword, known, size=size)
        near = nearest(best, around, ceil(ROOM * self._settings.context_chars / self._settings.chunker.size))
        places = [*(each.place for each in best), *near]
        read = {hit.place: hit for hit in (await self._index.chunks(best[0].index, places) if best else ())}
        return Retrieval(scored(best, read), found, model, [read[place] for place in near if place in read])

    async def _candidates(
        self, site: str, text: str, kind: SearchKind, depth: int, groups: Iterable[str]
    ) -> tuple[SearchEmbedder | None, Candidates]:
        model, vector, floors, fingerprint = None, None, Floors(0.0, 0.0), ""
        if kind != "keyword":
            model = await self._models.for_site(site)
            vector = await model.query(text)
            floors = Floors(model.profile.short_floor, model.profile.content_floor)
            fingerprint = model.fingerprint
        return model, await self._index.candidates(
            site,
            text,
            vector,
            model=fingerprint,
            floors=floors,
            content_hits=depth,
            keyword_hits=depth if kind != "vector" else 0,
            groups=groups,
        )

    async def search(
        self, site: str, query: str, *, kind: SearchKind, size: int, groups: Iterable[str] = ()
    ) -> Sequence[SearchHit]:
        """Hits as the outside sees them. Raises: UnknownSite, Retryable."""
        return [
            SearchHit(
                page_id=hit.page_id,
                lang=hit.lang,
                title=hit.title,
                url=hit.url,
                field=hit.field,
                ord=hit.ord,
                text=hit.text,
                score=hit.score,
                cosine=hit.cosine,
                revision=hit.revision,
            )
            for hit in await self.hits(site, query, kind=kind, size=size, groups=groups)
        ]
