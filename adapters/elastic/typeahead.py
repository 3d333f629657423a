"""Searches titles and headings by prefix, both in one round trip."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from elasticsearch import AsyncElasticsearch, NotFoundError

from adapters.elastic.client import explained
from adapters.elastic.search import Where, checked, visible_to
from pipelines.query.search.typeahead import TitleCandidate

CANDIDATES = 50  # of titles and of headings: the best of them are shown
READ = ["title", "url", "lang"]


class ElasticTypeahead:
    """A pipelines.query.search.typeahead.TypeaheadIndex. One per process."""

    def __init__(self, es: AsyncElasticsearch, indexes: Where) -> None:
        self._es = es
        self._indexes = indexes

    async def titles(
        self, site: str, typed: str, *, lang: str | None, groups: Iterable[str]
    ) -> tuple[list[TitleCandidate], list[TitleCandidate]]:
        """Raises: IndexUnfit, ElasticsearchDown."""
        only: list[dict[str, Any]] = [{"term": {"kind": "chunk"}}, visible_to(groups)]
        only += [{"term": {"lang": lang}}] if lang else []
        # Each chunk has its page's title, so the first chunks are enough. One hit for each page.
        by_title = _search("title", typed, [*only, {"term": {"ord": 0}}]) | {"collapse": {"field": "page_key"}}
        by_heading = _search("headings", typed, only)
        target = {"index": self._indexes.target(site)}
        with explained(f"completing what was typed on site {site}"):
            try:
                answer = await self._es.msearch(searches=[target, by_title, target, by_heading])
            except NotFoundError:
                answer = None
        if answer is None or any(response.get("status") == 404 for response in answer["responses"]):
            await self._indexes.explain_absence(site)
            return [], []
        titles, headings = ([_candidate(hit) for hit in checked(each)["hits"]["hits"]] for each in answer["responses"])
        return titles, headings


def _search(field: str, typed: str, only: list[dict[str, Any]]) -> dict[str, Any]:
    """All words must be there; the last one may be a prefix."""
    return {
        "query": {
            "bool": {"must": {"match_bool_prefix": {field: {"query": typed, "operator": "and"}}}, "filter": only}
        },
        "size": CANDIDATES,
        "track_total_hits": False,
        "_source": [*READ, "headings"] if field == "headings" else READ,
    }


def _candidate(hit: dict[str, Any]) -> TitleCandidate:
    source = hit["_source"]
    return TitleCandidate(source["title"], source["url"], source["lang"], tuple(source.get("headings", ())))
