"""Versions of sites' texts: one document each, in one append-only index for all sites.

A document's id contains its version, so only one of two concurrent requests creates the next version. Since documents
are never changed or deleted, their number shows whether there are new ones.
"""

from __future__ import annotations

from typing import Any

import structlog
from pydantic import ValidationError

from adapters.elastic.indexes import TEXTS
from adapters.elastic.reading import buckets_of
from adapters.elastic.system_index import SystemIndex
from schemas.base import problems
from schemas.text_version import TextKind, TextVersion

log = structlog.get_logger(__name__)

AT_ONCE = 1_000  # texts, or sites, in an answer
MOST_VERSIONS = 200  # read of a text


class ElasticTexts(SystemIndex):
    """A pipelines.query.live.live_texts.TextStore."""

    index = TEXTS

    async def state(self) -> str:
        """A token that changes whenever a version is added. Raises: ElasticsearchDown."""
        newest = {"newest": {"max": {"field": "at"}}}
        answer = await self._answer("looking for changed texts", size=0, track_total_hits=True, aggs=newest)
        if "aggregations" not in answer:  # there are no versions yet
            return ""
        return f"{answer['hits']['total']['value']} {answer['aggregations']['newest']['value']}"

    async def live(self, site: str | None = None) -> list[TextVersion]:
        """The newest version of each text that is no candidate, of all sites or of one. Raises: ElasticsearchDown."""
        filters: list[dict[str, Any]] = [{"term": {"candidate": False}}]
        if site is not None:
            filters.append({"term": {"site": site}})
        newest = {"newest": {"top_hits": {"size": 1, "sort": [{"version": "desc"}]}}}
        doing = "reading the texts that are live"
        buckets = await self._buckets(doing, "text", {"bool": {"filter": filters}}, newest)
        return _read([hit for bucket in buckets for hit in bucket["newest"]["hits"]["hits"]])

    async def changed(self, kind: TextKind, name: str) -> set[str]:
        """The sites with versions of this text. Raises: ElasticsearchDown."""
        doing = f"looking for sites that have versions of {kind}/{name}"
        buckets = await self._buckets(doing, "site", {"wildcard": {"text": {"value": f"*:{kind}/{name}"}}}, {})
        return {bucket["key"]["site"] for bucket in buckets}

    async def _buckets(self, doing: str, field: str, query: dict[str, Any], aggs: dict[str, Any]) -> list[Any]:
        """A bucket for each value of the field in the query's documents, read in pages."""
        buckets: list[Any] = []
        after: dict[str, Any] = {}
        while True:
            pages = {"size": AT_ONCE, "sources": [{field: {"terms": {"field": field}}}], **after}
            by = {"by": {"composite": pages, "aggs": aggs}}
            answer = await self._answer(doing, query=query, size=0, aggs=by)
            found = buckets_of(answer, "by")
            buckets += found
            if len(found) < AT_ONCE:
                return buckets
            after = {"after": answer["aggregations"]["by"]["after_key"]}

    async def versions(self, site: str, kind: TextKind, name: str) -> list[TextVersion]:
        """The newest first, at most two hundred. Raises: ElasticsearchDown."""
        text = _text(site, kind, name)
        doing, query = f"reading the versions of {text}", {"term": {"text": text}}
        return _read(await self._hits(doing, query=query, sort=[{"version": "desc"}], size=MOST_VERSIONS))

    async def add(self, version: TextVersion) -> bool:
        """Readers see the version at once. False: its number exists already. Raises: ElasticsearchDown."""
        text = _text(version.site, version.kind, version.name)
        document = {
            "site": version.site,
            "text": text,
            "version": version.version,
            "candidate": version.candidate,
            "at": version.at,
            "kept": version.dumped(),
        }
        return await self._create(f"keeping a version of {text}", f"{text}:{version.version}", document)


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
