"""Versions of sites' texts: one document each, in one append-only index for all sites.

A document's id contains its version, so only one of two concurrent requests creates the next version. Since documents
are never changed or deleted, their number shows whether there are new ones.
"""

from __future__ import annotations

from typing import Any

import structlog
from elasticsearch import AsyncElasticsearch, ConflictError, NotFoundError
from pydantic import ValidationError

from adapters.elastic.client import explained
from adapters.elastic.indexes import TEXTS, ElasticIndexes
from schemas.base import problems
from schemas.text_version import TextKind, TextVersion

log = structlog.get_logger(__name__)

AT_ONCE = 1_000  # texts, or sites, in an answer
MOST_VERSIONS = 200  # read of a text


class ElasticTexts:
    """Reads and writes `pagewire.texts`: a pipelines.query.live.live_texts.TextStore."""

    def __init__(self, es: AsyncElasticsearch, indexes: ElasticIndexes) -> None:
        self._es = es
        self._indexes = indexes

    async def state(self) -> str:
        """A token that changes whenever a version is added. Raises: ElasticsearchDown."""
        with explained("looking for changed texts"):
            try:
                answer = await self._es.search(
                    index=TEXTS, size=0, track_total_hits=True, aggs={"newest": {"max": {"field": "at"}}}
                )
            except NotFoundError:  # there are no versions yet
                return ""
        return f"{answer['hits']['total']['value']} {answer['aggregations']['newest']['value']}"

    async def live(self, site: str | None = None) -> list[TextVersion]:
        """The newest version of each text that is no candidate, of all sites or of one. Raises: ElasticsearchDown."""
        filters: list[dict[str, Any]] = [{"term": {"candidate": False}}]
        if site is not None:
            filters.append({"term": {"site": site}})
        newest = {"newest": {"top_hits": {"size": 1, "sort": [{"version": "desc"}]}}}
        with explained("reading the texts that are live"):
            buckets = await self._buckets("text", {"bool": {"filter": filters}}, newest)
        return _read([hit for bucket in buckets for hit in bucket["newest"]["hits"]["hits"]])

    async def changed(self, kind: TextKind, name: str) -> set[str]:
        """The sites with versions of this text. Raises: ElasticsearchDown."""
        with explained(f"looking for sites that have versions of {kind}/{name}"):
            buckets = await self._buckets("site", {"wildcard": {"text": {"value": f"*:{kind}/{name}"}}}, {})
        return {bucket["key"]["site"] for bucket in buckets}

    async def _buckets(self, field: str, query: dict[str, Any], aggs: dict[str, Any]) -> list[Any]:
        """A bucket for each value of the field in the query's documents, read in pages."""
        buckets: list[Any] = []
        after: dict[str, Any] = {}
        while True:
            pages = {"size": AT_ONCE, "sources": [{field: {"terms": {"field": field}}}], **after}
            try:
                answer = await self._es.search(
                    index=TEXTS, query=query, size=0, aggs={"by": {"composite": pages, "aggs": aggs}}
                )
            except NotFoundError:
                return []
            found = answer["aggregations"]["by"]
            buckets += found["buckets"]
            if len(found["buckets"]) < AT_ONCE:
                return buckets
            after = {"after": found["after_key"]}

    async def versions(self, site: str, kind: TextKind, name: str) -> list[TextVersion]:
        """The newest first, at most two hundred. Raises: ElasticsearchDown."""
        text = _text(site, kind, name)
        with explained(f"reading the versions of {text}"):
            try:
                answer = await self._es.search(
                    index=TEXTS, query={"term": {"text": text}}, sort=[{"version": "desc"}], size=MOST_VERSIONS
                )
            except NotFoundError:
                return []
        return _read(answer["hits"]["hits"])

    async def add(self, version: TextVersion) -> bool:
        """Readers see the version at once. False: its number exists already. Raises: ElasticsearchDown."""
        await self._indexes.ensure_system(TEXTS)
        text = _text(version.site, version.kind, version.name)
        document = {
            "site": version.site,
            "text": text,
            "version": version.version,
            "candidate": version.candidate,
            "at": version.at,
            "kept": version.dumped(),
        }
        with explained(f"keeping a version of {text}"):
            try:
                await self._es.create(index=TEXTS, id=f"{text}:{version.version}", document=document, refresh=True)
            except ConflictError:
                return False
        return True


def _text(site: str, kind: TextKind, name: str) -> str:
    return f"{site}:{kind}/{name}"


def _read(hits: list[Any]) -> list[TextVersion]:
    """The texts' versions, without those that this version of Pagewire cannot read."""
    found = []
    for hit in hits:
        try:
            found.append(TextVersion.stored(hit["_source"]["kept"]))
        except ValidationError as err:
            log.warning("a version of a text cannot be read, and is passed over", id=hit["_id"], problems=problems(err))
    return found
