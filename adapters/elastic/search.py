"""Searches: candidates for a question in one round trip, the texts of the best and of what is near them in another.

Most candidates only help to order the others, and their texts are what a search spends its time on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Protocol

from cachetools import TTLCache
from elasticsearch import AsyncElasticsearch, NotFoundError

from adapters.elastic import chunk_units
from adapters.elastic.client import ElasticsearchRefused, explained, refusal
from pipelines.query.search.ports import Candidate, Candidates, Floors, Hit, HitUnit, QueryModelOutdated
from pipelines.runtime.indexes import IndexGone, IndexInfo
from schemas.compact import expand
from schemas.ingest import Vector32
from schemas.keys import chunk_id
from schemas.page import FIELDS, FieldName
from text.language import identified
from text.words import readings, words

SHORT_FIELDS: tuple[FieldName, ...] = tuple(f for f in FIELDS if f != "content")
# Where a candidate stands, from columns instead of the stored document.
PLACE: dict[str, Any] = {"_source": False, "stored_fields": "_none_", "docvalue_fields": ["page_key", "field", "ord"]}
SOURCE = ["page_key", "page_id", "lang", "revision", "title", "url", "field", "ord", "text", "units"]
# HNSW looks at this many candidates per shard: recall against time (Elasticsearch's own default is 1.5 x k).
MIN_CANDIDATES = 100
# Boosts beside the stems, from the runs recorded in pipelines/query/search/fuse.py.
WORDS = 0.5
TITLE = 0.5
# Words of a question that count, if it has more: each is up to six clauses beside its stems. Elasticsearch takes 1,024
# clauses in one query, or more where it has more memory.
MAX_WORDS = 100
MAX_STEMS = 300
MAX_LANGUAGES = 3  # of an index, in which a question is read besides its own; the ones that most chunks are in
KNOWN_LANGUAGES = 50  # of an index, its own among them or not
LANGUAGES_TTL = 60.0  # seconds until the order of a site's languages is looked up again
MAX_FIELD_CHUNKS = 500  # of one field, when its full text is wanted


def cosine_of(score: float) -> float:
    """Elasticsearch scores a cosine c as (1 + c) / 2."""
    return 2 * score - 1


def visible_to(groups: Iterable[str]) -> dict[str, Any]:
    """The filter that lets through pages open to everybody or to one of the groups."""
    everybody = {"bool": {"must_not": {"exists": {"field": "groups"}}}}
    return {"bool": {"should": [everybody, {"terms": {"groups": list(groups)}}], "minimum_should_match": 1}}


class Where(Protocol):
    """Which index of a site is searched: the live one (adapters.elastic.indexes.Indexes), or always the same."""

    def target(self, site: str) -> str:
        """Name or alias."""
        ...

    async def live(self, site: str) -> IndexInfo | None: ...

    async def now(self, site: str) -> IndexInfo | None: ...

    async def explain_absence(self, site: str) -> None: ...


@dataclass(frozen=True)
class Pinned:
    """One index, live or not."""

    info: IndexInfo

    def target(self, site: str) -> str:
        return self.info.name

    async def live(self, site: str) -> IndexInfo:
        return self.info

    async def now(self, site: str) -> IndexInfo:
        return self.info

    async def explain_absence(self, site: str) -> None:
        """Raises: IndexGone."""
        raise IndexGone(f"index {self.info.name} is gone")


class SiteSearch:
    """Reads one index of a site, as a rule the live one. One per process."""

    def __init__(self, es: AsyncElasticsearch, indexes: Where) -> None:
        self._es = es
        self._indexes = indexes
        self._languages: TTLCache[str, list[str]] = TTLCache(1_000, LANGUAGES_TTL)

    async def candidates(
        self,
        site: str,
        text: str,
        vector: Vector32 | None,
        *,
        model: str = "",
        floors: Floors,
        content_hits: int,
        keyword_hits: int,
        groups: Iterable[str] = (),
    ) -> Candidates:
        """Search all five fields by vector (unless None) and by keywords (unless `keyword_hits` is 0).

        `model` is the fingerprint of the vector's model.

        Raises:
            QueryModelOutdated: another index was promoted, whose vectors are of another model.
            IndexUnfit: the site had an index, but none is live.
            ElasticsearchDown: away, or the index is not ready yet.
        """
        visible = visible_to(groups)
        # The same copies of the shards for the same question: copies count deleted documents each in its own way.
        target = {"index": self._indexes.target(site), "preference": _preference(text)}
        live = await self._indexes.live(site) if keyword_hits else None
        by_language = live is not None and live.by_language
        asked = await self._readings(text, live.name if live and by_language else "") if keyword_hits else []
        searches: list[dict[str, Any]] = []
        if vector is not None:
            searches += [target, _knn(vector, floors, content_hits, visible)]
        if keyword_hits:
            # A word counts by how rare it is in the whole index. With one shard that costs nothing.
            everywhere = {"search_type": "dfs_query_then_fetch"}
            searches += [target | everywhere, _keywords(text, asked, keyword_hits, visible)]
        stems = _stems(asked)[:MAX_STEMS]
        if stems:
            searches += [target, _counts(stems)]
        with explained(f"searching site {site}"):
            try:
                found = await self._es.msearch(searches=searches)
            except NotFoundError:
                found = None
        if found is None or any(response.get("status") == 404 for response in found["responses"]):
            await self._indexes.explain_absence(site)
            return Candidates([], [], [], 0)
        responses = list(found["responses"])
        dense = []
        if vector is not None:
            dense = [_candidate(h, cosine=cosine_of(h["_score"])) for h in await self._of_model(site, model, responses)]
            del responses[0]
        keyword = [_candidate(h, bm25=h["_score"]) for h in _hits(responses[0])] if keyword_hits else []
        terms, total = _known_words(asked, stems, _answered(responses[-1])) if stems else ([], 0)
        return Candidates(dense, keyword, terms, total, by_language)

    async def _of_model(self, site: str, model: str, responses: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The hits by vector, if the index that was searched is one of the vector's model.

        A promotion is seen by its traces: hits of another index than the one known as live, or none at all, since
        vectors of two models have nothing in common and may not even have the same length.
        """
        vectors = responses[0]
        found = bool(vectors.get("hits", {}).get("hits"))
        indexes = {hit["_index"] for response in responses for hit in response.get("hits", {}).get("hits", ())}
        live = await self._indexes.live(site)
        if live is None or live.model != model or indexes != {live.concrete} or not found:
            live = await self._indexes.now(site)
            if live is None or live.model != model or indexes - {live.concrete}:
                raise QueryModelOutdated(f"another index of site {site} is live than a moment ago")
        return _hits(vectors)

    async def _readings(self, text: str, index: str) -> list[list[tuple[str, ...]]]:
        """The question's words as the index may hold them: in its own language, and in those of the pages.

        A question of two words may be in any language, and pages in another than their tag says: words' first letters
        count as well where nobody can tell the question's language, and alone where no page is in it. On XQuAD's
        English pages German questions have page@1 .931 by them, .923 by what English would make of their words.
        Without `index` that is all there is, as indexes had it that are from before there were languages.
        """
        if not index:
            return readings(text, [""])
        there = await self._spoken(index)
        heard = identified(text)
        same = _in_language(there, heard)
        if heard and not same:
            self._languages.pop(index, None)  # the first page in it may be a moment old
            there = await self._spoken(index)
            same = _in_language(there, heard)
        if heard and not same:
            return readings(text, (), beginnings=True)
        return readings(text, dict.fromkeys([*same, *there[:MAX_LANGUAGES]]), beginnings=not heard)

    async def _spoken(self, index: str) -> list[str]:
        """The languages of an index, that of most chunks first."""
        if index not in self._languages:
            with explained(f"looking up the languages of {index}"):
                answer = await self._es.search(
                    index=index,
                    size=0,
                    query={"term": {"kind": "chunk"}},
                    aggs={"languages": {"terms": {"field": "lang", "size": KNOWN_LANGUAGES}}},
                    ignore_unavailable=True,
                )
            buckets = answer.get("aggregations", {}).get("languages", {}).get("buckets", [])
            if not buckets:
                return []
            self._languages[index] = [bucket["key"] for bucket in buckets]
        return self._languages[index]

    async def chunks(self, index: str, addresses: Sequence[tuple[str, FieldName, int]]) -> list[Hit]:
        """Chunks of an index by page key, field and position, as a search sees them; what does not exist is missing.

        Raises:
            QueryModelOutdated: the index is gone: another one was promoted meanwhile.
        """
        if not addresses:
            return []
        order = {chunk_id(*address): number for number, address in enumerate(addresses)}
        with explained(f"reading chunks of {index}"):
            try:
                # A search reads many documents at once, in a third of the time that `_mget` takes.
                answer = await self._es.search(
                    index=index,
                    query={"ids": {"values": list(order)}},
                    size=len(order),
                    track_total_hits=False,
                    source_includes=SOURCE,
                )
            except NotFoundError:
                raise QueryModelOutdated(f"index {index} is not there any more") from None
        return [_hit(hit) for hit in sorted(answer["hits"]["hits"], key=lambda hit: order[hit["_id"]])]

    async def field(self, index: str, page_key: str, field: FieldName) -> list[Hit]:
        """All chunks of one field in an index, in order."""
        with explained(f"reading {field} of {page_key}"):
            answer = await self._es.search(
                index=index,
                query={"bool": {"filter": [{"term": {"page_key": page_key}}, {"term": {"field": field}}]}},
                sort=["ord"],
                size=MAX_FIELD_CHUNKS,
                source_includes=SOURCE,
            )
        return [_hit(hit) for hit in answer["hits"]["hits"]]


def _knn(vector: Vector32, floors: Floors, content_hits: int, visible: dict[str, Any]) -> dict[str, Any]:
    def clause(field: FieldName, k: int, floor: float) -> dict[str, Any]:
        return {
            "field": "embedding",
            "query_vector": vector,
            "k": k,
            "num_candidates": max(MIN_CANDIDATES, 2 * k),
            "similarity": floor,
            "filter": [{"term": {"field": field}}, visible],
        }

    clauses = [clause(field, 1, floors.short) for field in SHORT_FIELDS]
    clauses.append(clause("content", content_hits, floors.content))
    return {"knn": clauses, "size": content_hits + len(SHORT_FIELDS), **PLACE}


def _keywords(
    text: str, asked: Sequence[Sequence[tuple[str, ...]]], size: int, visible: dict[str, Any]
) -> dict[str, Any]:
    # Stems, made by ourselves so that "Hunde" finds "Hund" on any server: language analysers are a module that not
    # every server has. The words as they stand count as well, and the page's title a little.
    # A clause for each word: Lucene makes one flat disjunction of them, in which it passes over what cannot be among
    # the best. Around a boosted match of several words it builds a nested one, and takes twice as long.
    found = words(text)
    if len(found) > MAX_WORDS:
        text = " ".join(list(dict.fromkeys(found))[:MAX_WORDS])
    clauses: list[dict[str, Any]] = [{"match": {"stems": " ".join(_stems(asked)[:MAX_STEMS])}}]
    for word in text.split():
        clauses.append({"match": {"text": {"query": word, "boost": WORDS}}})
        clauses.append({"match": {"title": {"query": word, "boost": TITLE}}})
    return {
        "query": {"bool": {"should": clauses, "minimum_should_match": 1, "filter": [visible]}},
        "size": size,
        "track_total_hits": False,  # counting them would mean to look at all
        **PLACE,
    }


def _counts(stems: Sequence[str]) -> dict[str, Any]:
    """How many chunks have each stem, and how many there are: over all shards, and without what was deleted."""
    filters = [{"term": {"stems": stem}} for stem in stems]
    chunks = {"term": {"kind": "chunk"}}
    return {"size": 0, "track_total_hits": False, "aggs": {"having": {"filters": {"filters": [chunks, *filters]}}}}


def _known_words(
    asked: Iterable[Sequence[tuple[str, ...]]], stems: Sequence[str], answer: dict[str, Any]
) -> tuple[list[tuple[str, int]], int]:
    """The index's own terms of a question with their document frequency, and the number of documents.

    Of a word's readings the one that the index knows best. Words whose stems were not asked for do not count.
    """
    total, *counts = [bucket["doc_count"] for bucket in answer["aggregations"]["having"]["buckets"]]
    having = dict(zip(stems, counts, strict=True))
    heard = (max(word, key=lambda reading: _known(reading, having)) for word in asked)
    terms = dict.fromkeys(stem for reading in heard for stem in _counting(reading, having) if stem in having)
    return [(term, having[term]) for term in terms], total


def _in_language(tags: Iterable[str], lang: str | None) -> list[str]:
    return [tag for tag in tags if tag.partition("-")[0] == lang]


def _preference(text: str) -> str:
    return blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


def _stems(asked: Iterable[Sequence[tuple[str, ...]]]) -> list[str]:
    """Of all readings, each once."""
    return list(dict.fromkeys(stem for word in asked for reading in word for stem in reading))


def _counting(reading: Sequence[str], having: Mapping[str, int]) -> Sequence[str]:
    """Without a compound that the index does not have: it is known by its parts."""
    compound = len(reading) > 1 and len(reading[0]) > len(reading[1])
    return reading[1:] if compound and not having.get(reading[0]) else reading


def _known(reading: Sequence[str], having: Mapping[str, int]) -> float:
    """Share of a word's parts that the index has."""
    return sum(having.get(stem, 0) > 0 for stem in reading) / len(reading)


def _hits(response: dict[str, Any]) -> list[dict[str, Any]]:
    hits: list[dict[str, Any]] = _answered(response)["hits"]["hits"]
    return hits


def _answered(response: dict[str, Any]) -> dict[str, Any]:
    """Raises: ElasticsearchDown, ElasticsearchRefused: that search of several failed."""
    if "error" in response:
        error = response["error"]
        kind = refusal(response.get("status", 500), f"{error.get('type')}: {error.get('reason')}")
        raise (kind or ElasticsearchRefused)(f"search: {error.get('reason', error.get('type'))}")
    return response


def _candidate(found: dict[str, Any], cosine: float | None = None, bm25: float | None = None) -> Candidate:
    place = {name: values[0] for name, values in found["fields"].items()}
    return Candidate(**place, index=found["_index"], cosine=cosine, bm25=bm25, score=cosine or bm25 or 0.0)


def _hit(found: dict[str, Any]) -> Hit:
    units, vectors = chunk_units.read(found["_source"])
    rows = expand(vectors, len(units))
    own = tuple(HitUnit(**unit, vector=row) for unit, row in zip(units, rows, strict=True))
    return Hit(**found["_source"] | {"units": own}, index=found["_index"])
