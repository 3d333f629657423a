"""Contents and freshness of all sites, by three requests for ten thousand sites.

aliases and mappings of all indexes ─▶ live indexes ──┐
documents of each index, counted ─────────────────────┼─▶ SiteStatus of each site
receipts of each site, counted ───────────────────────┘
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from elasticsearch import AsyncElasticsearch, NotFoundError
from more_itertools import chunked

from adapters.elastic.client import ElasticsearchDown, explained
from adapters.elastic.indexes import RECEIPTS, ElasticIndexes, LiveIndex, is_gone, not_live
from adapters.elastic.reading import answer_of, buckets_of
from pipelines.runtime.indexes import IndexInfo, IndexUnfit, alias
from schemas.http import SiteStatus
from text.reader import READER

AT_ONCE = 10_000  # sites a request; four buckets each, of 65,536 that Elasticsearch makes at most
FRESH = "now-24h"
LIVE = {"term": {"state": "live"}}
KINDS = {
    "live": LIVE,
    "outdated": {"bool": {"filter": [LIVE], "must_not": [{"term": {"reader": READER}}]}},
    "chunks": {"term": {"kind": "chunk"}},
}


class SiteStatuses:
    """Reads statuses from Elasticsearch only."""

    def __init__(self, es: AsyncElasticsearch, indexes: ElasticIndexes) -> None:
        self._es = es
        self._indexes = indexes

    async def of(self, sites: Sequence[str]) -> list[SiteStatus]:
        """Statuses in the order of `sites`; a failing site has a `problem`. Raises: ElasticsearchDown."""
        found, receipts = await asyncio.gather(self._indexes.survey(sites), self._receipts(sites))
        counts = await self._counts([live.info for live in found.values() if isinstance(live.info, IndexInfo)])
        if without := [site for site, live in found.items() if live.info is None and not live.others]:
            await self._refresh_receipts()  # to know whether it had pages, also in the last second
            receipts |= await self._receipts(without)
        return [_status(site, found[site], counts, receipts.get(site, {})) for site in sites]

    async def _counts(self, indexes: Sequence[IndexInfo]) -> dict[str, Mapping[str, Any]]:
        """Live pages and chunks by index; indexes that do not answer are missing."""
        counts: dict[str, Mapping[str, Any]] = {}
        for some in chunked(indexes, AT_ONCE):
            # By index name for own indexes, by the documents' field `generation` for shared ones.
            names = {
                "_index": [info.name for info in some if not info.shared],
                "generation": [info.name for info in some if info.shared],
            }
            with explained("counting the pages of all sites"):
                answer = await self._es.search(
                    # By a pattern: a thousand names would exceed the length of a URL.
                    index=alias("*"),
                    query={"bool": {"should": [{"terms": {name: own}} for name, own in names.items()]}},
                    size=0,
                    aggs={
                        name: {
                            "terms": {"field": name, "size": len(some)},
                            "aggs": {"kinds": {"filters": {"filters": KINDS}}},
                        }
                        for name in names
                    },
                )
            silent = {failure["index"] for failure in answer["_shards"].get("failures", ())}
            empty = {kind: {"doc_count": 0} for kind in KINDS}
            found = (one for aggregation in answer["aggregations"].values() for one in aggregation["buckets"])
            filled = {one["key"]: one["kinds"]["buckets"] for one in found}
            counts |= {info.name: filled.get(info.name, empty) for info in some if info.concrete not in silent}
        return counts

    async def _refresh_receipts(self) -> None:
        with explained("refreshing receipts"), suppress(NotFoundError):
            await self._es.indices.refresh(index=RECEIPTS)

    async def _receipts(self, sites: Sequence[str]) -> dict[str, Any]:
        """By site: the number of searchable pages, and the durations of the last day's changes."""
        receipts: dict[str, Any] = {}
        of_site = {
            "searchable": {"filter": {"term": {"state": "searchable"}}},
            "recent": {
                "filter": {"range": {"at": {"gte": FRESH}}},
                "aggs": {"lag": {"percentiles": {"field": "lag_ms", "percents": [50, 95]}}},
            },
        }
        for some in chunked(sites, AT_ONCE):
            settled = [{"terms": {"site": some}}, {"terms": {"state": ["searchable", "deleted"]}}]
            answer = await answer_of(
                self._es,
                "reading the receipts of all sites",
                index=RECEIPTS,
                size=0,
                query={"bool": {"filter": settled}},
                aggs={"sites": {"terms": {"field": "site", "size": len(some)}, "aggs": of_site}},
            )
            receipts |= {one["key"]: one for one in buckets_of(answer, "sites")}
        return receipts


def _status(site: str, live: LiveIndex, counts: Mapping[str, Mapping[str, Any]], receipts: Any) -> SiteStatus:
    info, problem, pages, chunks, outdated = live.info, None, 0, 0, 0
    if isinstance(info, IndexUnfit):
        problem, info = str(info), None
    elif info is None and live.others:
        problem = str(not_live(site, live.others))
    elif info is None:
        searchable = receipts["searchable"]["doc_count"] if receipts else 0
        problem = str(is_gone(site, searchable)) if searchable else None
    elif (kinds := counts.get(info.name)) is None:
        problem = str(ElasticsearchDown(f"index {info.name} does not answer"))
    else:
        pages, outdated, chunks = (kinds[kind]["doc_count"] for kind in KINDS)
    lags = receipts["recent"]["lag"]["values"] if receipts else {}
    return SiteStatus(
        site=site,
        pages=pages,
        chunks=chunks,
        freshness_p50_ms=_rounded(lags.get("50.0")),
        freshness_p95_ms=_rounded(lags.get("95.0")),
        embedder=info.model if info else None,
        outdated=outdated,
        problem=problem,
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value)
