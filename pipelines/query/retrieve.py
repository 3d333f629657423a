"""Retrieve: the sources an answer may read.

query.rephrased ─▶ retrieve: hits in five fields + keywords ─▶ neighbours ─▶ sources ─▶ query.retrieved
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Protocol

from pipelines.query.fuse import Hit
from pipelines.query.search import Searcher
from pipelines.query.widen import passages, wanted
from pipelines.runtime.settings import Settings
from schemas.page import FieldName
from schemas.query import Grade, Rephrased, Retrieved

NOTHING_FOUND: Grade = 5
FINE: Grade = 0


class Chunks(Protocol):
    """Chunks by their place (adapters.elastic.search)."""

    async def chunks(self, index: str, addresses: Sequence[tuple[str, FieldName, int]]) -> list[Hit]: ...

    async def field(self, index: str, page_key: str, field: FieldName) -> list[Hit]: ...


async def retrieve(asked: Rephrased, searcher: Searcher, chunks: Chunks, settings: Settings) -> Retrieved:
    """Search and widen.

    Raises:
        UnknownSite, Retryable.
    """
    began = perf_counter()
    site = asked.request.site
    keyword = asked.mode == "keyword"
    hits = await searcher.hits(
        site,
        asked.question,
        kind="keyword" if keyword else "hybrid",
        size=settings.content_hits,
        groups=asked.request.groups,
    )
    searched = perf_counter()
    if keyword:
        # The whole text of the fields that matched, as it stands (SPEC B3).
        fields = dict.fromkeys((hit.index, hit.page_key, hit.field) for hit in hits)
        around = [chunk for place in fields for chunk in await chunks.field(*place)]
    else:
        around = await chunks.chunks(hits[0].index, wanted(hits, settings.neighbours)) if hits else []
    # Neighbours are read in real time and may be of a newer revision than the hit: never mix the two.
    revisions = {hit.page_key: hit.revision for hit in hits}
    around = [chunk for chunk in around if chunk.revision == revisions.get(chunk.page_key)]
    sources = passages(hits, around, settings.context_chars, whole_fields=keyword)
    return Retrieved(
        request=asked.request,
        question=asked.question,
        mode=asked.mode,
        grade=FINE if sources else NOTHING_FOUND,
        sources=sources,
        timings_ms=asked.timings_ms
        | {"search": (searched - began) * 1000, "widen": (perf_counter() - searched) * 1000},
    )
