"""Searches titles and headings by prefix, both in one round trip."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from elasticsearch import AsyncElasticsearch, NotFoundError

from adapters.elastic.client import explained
from adapters.elastic.search import Where, checked, visible_to
from pipelines.query.search.typeahead import TitleCandidate
from text.folding import fold

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
        if lang:  # de-AT is German, too
            spoken = [{"term": {"lang": lang}}, {"prefix": {"lang": f"{lang}-"}}]
            only.append({"bool": {"should": spoken, "minimum_should_match": 1}})
        # Each chunk has its page's title, so the first chunks are enough. One hit for each page.
        # Pages of an earlier version have a title that is not folded, and no headings.
        by_title = _search(typed, ("folded_title", "title"), [*only, {"term": {"ord": 0}}])
        by_title["collapse"] = {"field": "page_key"}
        by_heading = _search(typed, ("folded_headings",), only)
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


def _search(typed: str, fields: Sequence[str], only: list[dict[str, Any]]) -> dict[str, Any]:
    """All words must be there; the last one may be a prefix. Accents and case are no difference."""
    words = {"type": "bool_prefix", "fields": fields, "operator": "and"}
    either = [{"multi_match": {"query": each, **words}} for each in dict.fromkeys((fold(typed), typed))]
    return {
        "query": {"bool": {"must": {"dis_max": {"queries": either}}, "filter": only}},
        "size": CANDIDATES,
        "track_total_hits": False,
        "_source": [*READ, "headings"],
    }


def _candidate(hit: dict[str, Any]) -> TitleCandidate:
    source = hit["_source"]
    return TitleCandidate(source["title"], source["url"], source["lang"], tuple(source.get("headings", ())))
