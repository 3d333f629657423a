"""Searches for a question: candidates in one round trip, the texts of the best and of their neighbours in another.

Most candidates only affect the order of the others, and reading texts is the slow part of a search.
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
from adapters.elastic.reading import answer_of, buckets_of
from pipelines.query.search.ports import Candidate, Candidates, Floors, Hit, HitUnit, QueryModelOutdated
from pipelines.runtime.indexes import IndexGone, IndexInfo
from schemas.compact import expand
from schemas.ingest import SparseVector, Vector32
from schemas.keys import chunk_id
from schemas.labels import NO_LABELS, label_tokens
from schemas.page import FIELDS, FieldName, PageStamp
from text.language import identified
from text.spelling import LONGEST, SHORTEST_ACCENTED
from text.words import readings, words

SHORT_FIELDS: tuple[FieldName, ...] = tuple(f for f in FIELDS if f != "content")
# A candidate's place, from doc values instead of the stored document.
PLACE: dict[str, Any] = {"_source": False, "stored_fields": "_none_", "docvalue_fields": ["page_key", "field", "ord"]}
STAMP = frozenset(PageStamp.model_fields)
SOURCE = [
    "page_key",
    "page_id",
    "lang",
    "revision",
    "title",
    "url",
    "field",
    "ord",
    "text",
    "units",
    "labels",
    *sorted(STAMP),
]
# HNSW considers this many candidates per shard: recall against time (Elasticsearch's own default is 1.5 x k).
MIN_CANDIDATES = 100
# Boosts beside the stems, from the runs recorded in pipelines/query/search/fuse.py.
WORDS = 0.5
TITLE = 0.5
# Words of a question that are searched: each makes up to six clauses besides its stems. Elasticsearch allows 1,024
# clauses in a query, or more with more memory.
MAX_WORDS = 100
MAX_STEMS = 300
MAX_LOOKED_UP = 10  # words of a question for which similar words are looked up, if no chunk has them
MAX_LANGUAGES = 3  # most frequent languages of an index by which a question is stemmed, besides its own
KNOWN_LANGUAGES = 50  # languages of an index that are looked up
LANGUAGES_TTL = 60.0  # seconds for which the languages of an index are cached
MAX_FIELD_CHUNKS = 500  # of a field's full text
MAX_PAGE_CHUNKS = 2_000  # of a page in all its languages


def cosine_of(score: float) -> float:
    """Elasticsearch scores a cosine c as (1 + c) / 2."""
    return 2 * score - 1


def visible_to(groups: Iterable[str]) -> dict[str, Any]:
    """A filter for pages that are open to everybody or to one of the groups."""
    everybody = {"bool": {"must_not": {"exists": {"field": "groups"}}}}
    return {"bool": {"should": [everybody, {"terms": {"groups": list(groups)}}], "minimum_should_match": 1}}


def labelled(labels: Mapping[str, Iterable[str]]) -> list[dict[str, Any]]:
    """Filters for pages that have one of the values of each key."""
    return [{"terms": {"labels": label_tokens({key: values})}} for key, values in labels.items()]


class Where(Protocol):
    """The searched index of a site: the live one (adapters.elastic.indexes.ElasticIndexes), or a fixed one."""

    def target(self, site: str) -> str:
        """Name or alias."""
        ...

    async def recent(self, site: str) -> IndexInfo | None: ...

    async def now(self, site: str) -> IndexInfo | None: ...

    async def explain_absence(self, site: str) -> None: ...


@dataclass(frozen=True)
class Pinned:
    """One index, live or not."""

    info: IndexInfo

    def target(self, site: str) -> str:
        return self.info.name

    async def recent(self, site: str) -> IndexInfo:
        return self.info

    async def now(self, site: str) -> IndexInfo:
        return self.info

    async def explain_absence(self, site: str) -> None:
        """Raises: IndexGone."""
        raise IndexGone(f"index {self.info.name} is gone")


class SiteSearch:
    """Searches one index of a site, usually the live one. One per process."""

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
        sparse: SparseVector | None = None,
        short_hits: int = 1,
        groups: Iterable[str] = (),
        labels: Mapping[str, Iterable[str]] = NO_LABELS,
    ) -> Candidates:
        """Search all five fields by vector (unless None) and by keywords (unless `keyword_hits` is 0): by `sparse`, or
        by BM25 where that is None.

        `model` is the fingerprint of the vector's model. Of each key in `labels` the pages must have one of the values.

        Raises:
            QueryModelOutdated: an index with vectors of another model was promoted.
            IndexUnfit: the site had an index, but none is live.
            ElasticsearchDown: unreachable, or the index is not ready yet.
        """
        visible = [visible_to(groups), *labelled(labels)]
        # The same question goes to the same copies of the shards, since copies count deleted documents differently.
        target = {"index": self._indexes.target(site), "preference": _preference(text)}
        live = await self._indexes.recent(site) if keyword_hits else None
        by_language = live is not None and live.by_language
        readings = await self._readings(text, live.name if live and by_language else "") if keyword_hits else []
        searches: list[dict[str, Any]] = []
        if vector is not None:
            searches += [target, _knn(vector, floors, content_hits, short_hits, visible)]
        if keyword_hits and sparse is not None:
            searches += [target, _by_tokens(sparse, keyword_hits, visible)]
        elif keyword_hits:
            # Weight words by their frequency in the whole index. This is free with one shard.
            everywhere = {"search_type": "dfs_query_then_fetch"}
            searches += [target | everywhere, _keywords(text, readings, keyword_hits, visible)]
        stems = _stems(readings)[:MAX_STEMS]
        if stems:
            searches += [target, _counts(stems) | _similar_words(text)]
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
        if not stems:
            return Candidates(dense, keyword, [], 0, by_language)
        terms, total = _known_words(readings, stems, checked(responses[-1]))
        return Candidates(dense, keyword, terms, total, by_language, _similar(responses[-1]))

    async def _of_model(self, site: str, model: str, responses: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The hits by vector, if the searched index has vectors of this model.

        Signs of a promotion are hits from another index than the known live one, or no hits at all: vectors of two
        models have nothing in common, and may have different lengths.
        """
        vectors = responses[0]
        found = bool(vectors.get("hits", {}).get("hits"))
        indexes = {hit["_index"] for response in responses for hit in response.get("hits", {}).get("hits", ())}
        live = await self._indexes.recent(site)
        if live is None or live.model != model or indexes != {live.concrete} or not found:
            live = await self._indexes.now(site)
            if live is None or live.model != model or indexes - {live.concrete}:
                raise QueryModelOutdated(f"another index of site {site} is live than a moment ago")
        return _hits(vectors)

    async def _readings(self, text: str, index: str) -> list[list[tuple[str, ...]]]:
        """The stems of the question's words, in the question's language and in those of the pages.

        The language of a short question may be unknown, and pages may have wrong language tags. So prefixes of words
        are added where the question's language is unknown, and used alone where no page is in that language. On
        XQuAD's English pages German questions have page@1 .931 by prefixes, and .923 by English stems. Without `index`
        only prefixes are used, as in indexes of older versions, which have no languages.
        """
        if not index:
            return readings(text, [""])
        there = await self._index_languages(index)
        best = identified(text)
        same = _in_language(there, best)
        if best and not same:
            self._languages.pop(index, None)  # its first page in this language may be new
            there = await self._index_languages(index)
            same = _in_language(there, best)
        if best and not same:
            return readings(text, (), beginnings=True)
        return readings(text, dict.fromkeys([*same, *there[:MAX_LANGUAGES]]), beginnings=not best)

    async def _index_languages(self, index: str) -> list[str]:
        """The languages of an index, the most frequent one first."""
        if index not in self._languages:
            answer = await answer_of(
                self._es,
                f"looking up the languages of {index}",
                index=index,
                size=0,
                query={"term": {"kind": "chunk"}},
                aggs={"languages": {"terms": {"field": "lang", "size": KNOWN_LANGUAGES}}},
            )
            if not (buckets := buckets_of(answer, "languages")):
                return []
            self._languages[index] = [bucket["key"] for bucket in buckets]
        return self._languages[index]

    async def chunks(self, index: str, addresses: Sequence[tuple[str, FieldName, int]]) -> list[Hit]:
        """Searchable chunks of an index by page key, field and position; missing ones are left out.

        Raises:
            QueryModelOutdated: the index is gone, since another one was promoted.
        """
        if not addresses:
            return []
        order = {chunk_id(*address): number for number, address in enumerate(addresses)}
        with explained(f"reading chunks of {index}"):
            try:
                # A search reads many documents three times as fast as `_mget`.
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

    async def page(self, site: str, page_id: str, *, groups: Iterable[str] = ()) -> list[Hit]:
        """The chunks of a page in all its languages that these groups can find: language by language, in order.

        Raises:
            ElasticsearchDown.
        """
        own = [{"term": {"kind": "chunk"}}, {"term": {"page_id": page_id}}, visible_to(groups)]
        answer = await answer_of(
            self._es,
            f"reading page {page_id} of site {site}",
            index=self._indexes.target(site),
            query={"bool": {"filter": own}},
            sort=["page_key", "field", "ord"],
            size=MAX_PAGE_CHUNKS,
            track_total_hits=False,
            source_includes=SOURCE,
        )
        return [_hit(hit) for hit in answer["hits"]["hits"]]

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


def _knn(
    vector: Vector32, floors: Floors, content_hits: int, short_hits: int, visible: list[dict[str, Any]]
) -> dict[str, Any]:
    def clause(field: FieldName, k: int, floor: float) -> dict[str, Any]:
        return {
            "field": "embedding",
            "query_vector": vector,
            "k": k,
            "num_candidates": max(MIN_CANDIDATES, 2 * k),
            "similarity": floor,
            "filter": [{"term": {"field": field}}, *visible],
        }

    clauses = [clause(field, short_hits, floors.short) for field in SHORT_FIELDS]
    clauses.append(clause("content", content_hits, floors.content))
    return {"knn": clauses, "size": content_hits + short_hits * len(SHORT_FIELDS), **PLACE}


def _keywords(
    text: str, readings: Sequence[Sequence[tuple[str, ...]]], size: int, visible: list[dict[str, Any]]
) -> dict[str, Any]:
    # Stems are ours, so that "Hunde" finds "Hund" on any server: language analysers are a module that some servers
    # lack. The unstemmed words count as well, and the page's title a little.
    # There is a clause for each word, since Lucene makes one flat disjunction of them and skips documents that cannot
    # be among the best. A boosted match of several words becomes a nested disjunction, and takes twice as long.
    found = words(text)
    if len(found) > MAX_WORDS:
        text = " ".join(list(dict.fromkeys(found))[:MAX_WORDS])
    clauses: list[dict[str, Any]] = [{"match": {"stems": " ".join(_stems(readings)[:MAX_STEMS])}}]
    for word in text.split():
        clauses.append({"match": {"text": {"query": word, "boost": WORDS}}})
        clauses.append({"match": {"title": {"query": word, "boost": TITLE}}})
    return {
        "query": {"bool": {"should": clauses, "minimum_should_match": 1, "filter": visible}},
        "size": size,
        "track_total_hits": False,  # a count would have to visit all hits
        **PLACE,
    }


def _by_tokens(sparse: SparseVector, size: int, visible: list[dict[str, Any]]) -> dict[str, Any]:
    """The product of both sparse vectors.

    These clauses are what Elasticsearch makes of a `sparse_vector` query that prunes nothing. That query is a module
    that some servers lack, and its thresholds for pruning are those of another model.
    """
    clauses = [{"term": {"sparse": {"value": token, "boost": weight}}} for token, weight in sparse.items()]
    query = {"bool": {"should": clauses or [{"match_none": {}}], "minimum_should_match": 1, "filter": visible}}
    return {"query": query, "size": size, "track_total_hits": False, **PLACE}


def _counts(stems: Sequence[str]) -> dict[str, Any]:
    """A search for the number of chunks with each stem and of all chunks, over all shards, without deleted ones."""
    filters = [{"term": {"stems": stem}} for stem in stems]
    chunks = {"term": {"kind": "chunk"}}
    return {"size": 0, "track_total_hits": False, "aggs": {"having": {"filters": {"filters": [chunks, *filters]}}}}


def _similar_words(text: str) -> dict[str, Any]:
    """A look-up of similar words for those that the index does not have, in all its chunks, hidden ones too."""
    lengths = range(SHORTEST_ACCENTED, LONGEST + 1)
    long = [word for word in dict.fromkeys(words(text)) if len(word) in lengths and word.isalpha()]
    if not long:
        return {}
    look_up = {"field": "text", "suggest_mode": "missing", "prefix_length": 1, "min_word_length": lengths[0], "size": 5}
    return {"suggest": {"similar": {"text": " ".join(long[:MAX_LOOKED_UP]), "term": look_up}}}


def _similar(answer: dict[str, Any]) -> dict[str, list[str]]:
    """Word -> similar words, as the index has them."""
    looked_up = answer.get("suggest", {}).get("similar", ())
    return {word["text"]: [option["text"] for option in word["options"]] for word in looked_up if word["options"]}


def _known_words(
    readings: Iterable[Sequence[tuple[str, ...]]], stems: Sequence[str], answer: dict[str, Any]
) -> tuple[list[tuple[str, int]], int]:
    """The index's own terms of a question with their document frequency, and the number of documents.

    Of a word's stemmings, the best known one counts. Words whose stems were not searched are left out.
    """
    total, *counts = [bucket["doc_count"] for bucket in answer["aggregations"]["having"]["buckets"]]
    having = dict(zip(stems, counts, strict=True))
    best = (max(word, key=lambda reading: _known(reading, having)) for word in readings)
    terms = dict.fromkeys(stem for reading in best for stem in _counting(reading, having) if stem in having)
    return [(term, having[term]) for term in terms], total


def _in_language(tags: Iterable[str], lang: str | None) -> list[str]:
    return [tag for tag in tags if tag.partition("-")[0] == lang]


def _preference(text: str) -> str:
    return blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


def _stems(readings: Iterable[Sequence[tuple[str, ...]]]) -> list[str]:
    """The distinct stems of all readings."""
    return list(dict.fromkeys(stem for word in readings for reading in word for stem in reading))


def _counting(reading: Sequence[str], having: Mapping[str, int]) -> Sequence[str]:
    """The reading without a compound that the index does not have; its parts remain."""
    compound = len(reading) > 1 and len(reading[0]) > len(reading[1])
    return reading[1:] if compound and not having.get(reading[0]) else reading


def _known(reading: Sequence[str], having: Mapping[str, int]) -> float:
    """The share of a word's parts that the index has."""
    return sum(having.get(stem, 0) > 0 for stem in reading) / len(reading)


def _hits(response: dict[str, Any]) -> list[dict[str, Any]]:
    hits: list[dict[str, Any]] = checked(response)["hits"]["hits"]
    return hits


def checked(response: dict[str, Any]) -> dict[str, Any]:
    """Raises: ElasticsearchDown, ElasticsearchRefused: this search of a multi-search failed."""
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
    labels = tuple(found["_source"].get("labels", ()))
    said = {name: value for name, value in found["_source"].items() if name not in STAMP}
    stamp = PageStamp.stored({name: value for name, value in found["_source"].items() if name in STAMP})
    return Hit(**said | {"units": own, "labels": labels, "stamp": stamp}, index=found["_index"])
