"""Deletes expired documents, a thousand at a time, since the local engine has no delete by query."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from elasticsearch import AsyncElasticsearch, NotFoundError

from adapters.elastic.client import ElasticsearchDown, explained

BATCH = 1_000  # documents in a request
PASSED = (404, 409)  # deleted already, or written again after the search, so no longer expired


def older(field: str, before: Mapping[str, datetime]) -> dict[str, Any]:
    """A query for the documents that are older than their site's limit, in one request for all sites.

    Args:
        field: the field of a document's time.
        before: the limit by site. Many sites have the same limit.
    """
    sites = defaultdict(list)
    for site, at in before.items():
        sites[at].append(site)
    each = [
        {"bool": {"filter": [{"terms": {"site": names}}, {"range": {field: {"lt": at.isoformat()}}}]}}
        for at, names in sites.items()
    ]
    return {"bool": {"should": each, "minimum_should_match": 1}} if each else {"match_none": {}}


async def expire(es: AsyncElasticsearch, index: str, query: dict[str, Any]) -> Counter[str]:
    """Delete the query's documents. Returns their numbers by site; "": without a site. Raises: ElasticsearchDown."""
    deleted: Counter[str] = Counter()
    while True:
        with explained(f"looking for what is too old in {index}"):
            try:
                await es.indices.refresh(index=index)
                found = await es.search(
                    index=index, query=query, size=BATCH, source_includes=["site"], seq_no_primary_term=True
                )
            except NotFoundError:
                return deleted
        hits = found["hits"]["hits"]
        if not hits:
            return deleted
        operations = [
            {"delete": {"_id": hit["_id"], "if_seq_no": hit["_seq_no"], "if_primary_term": hit["_primary_term"]}}
            for hit in hits
        ]
        with explained(f"deleting what is too old in {index}"):
            answer = await es.bulk(index=index, operations=operations, refresh=True)
        done = [item["delete"] for item in answer["items"]]
        check(done)
        deleted.update(
            hit["_source"].get("site") or "" for hit, item in zip(hits, done, strict=True) if item["status"] == 200
        )
        if len(hits) < BATCH:
            return deleted


def check(done: list[dict[str, Any]]) -> None:
    """Raises: ElasticsearchDown: one of the operations failed."""
    for item in done:
        if item["status"] >= 400 and item["status"] not in PASSED:
            raise ElasticsearchDown(f"Elasticsearch answered {item['status']}: {item.get('error')}")
