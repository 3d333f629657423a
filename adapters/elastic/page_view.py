"""Pages in the live index, for operators and editors: their chunks, ids and addresses."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from elasticsearch import AsyncElasticsearch
from more_itertools import chunked

from adapters.elastic.live_page import live_page
from adapters.elastic.reading import answer_of, buckets_of
from adapters.elastic.search import labelled, visible_to
from pipelines.operate.addresses import path_of, same_address
from pipelines.query.extractive.suggestions import PageText
from pipelines.query.log.readable import PageName
from pipelines.runtime.indexes import alias
from schemas.http import IndexedChunk, IndexedPage, LabelCount, LabelList, ListedPage, LivePage, PageList
from schemas.keys import parse_page_key
from schemas.labels import NO_LABELS, labels_of
from schemas.page import FIELDS

MAX_CHUNKS = 500  # of a page; one of 300 KB has some 150
LISTED = 1_000  # pages a request of a search by address
LISTED_FIELDS = ("page_id", "lang", "title", "url", "revision")
LABELS = 500  # that are counted
IDS = 500  # pages looked up at once, ...
MAX_KEYS = 10_000  # ... in twenty languages each
BEGINNINGS = 200  # pages that are read for questions to suggest; some 300 KB
QUESTIONS = "FAQ questions Fragen häufig Antworten vragen preguntas domande perguntas pytania gyakori întrebări"


class ElasticPageView:
    """Reads live indexes. One per process."""

    def __init__(self, es: AsyncElasticsearch) -> None:
        self._es = es

    async def page(self, site: str, page_key: str, groups: Iterable[str] = ()) -> IndexedPage:
        """The page's chunks; empty for a page that these groups cannot find. Raises: ElasticsearchDown."""
        answer = await answer_of(
            self._es,
            f"reading {page_key}",
            index=alias(site),
            query={"bool": {"filter": [{"term": {"page_key": page_key}}, {"term": {"kind": "chunk"}}]}},
            sort=["field", "ord"],
            size=MAX_CHUNKS,
            source_includes=[*IndexedChunk.model_fields, "groups"],
            track_total_hits=True,
        )
        found = [hit["_source"] for hit in answer["hits"]["hits"]]
        mine = set(groups)
        seen = [source for source in found if "groups" not in source or mine.intersection(source["groups"])]
        chunks = [IndexedChunk(**{name: source[name] for name in IndexedChunk.model_fields}) for source in seen]
        chunks.sort(key=lambda chunk: (FIELDS.index(chunk.field), chunk.ord))
        total = answer["hits"]["total"]["value"]
        return IndexedPage(chunks=tuple(chunks), total=total, hidden=len(found) - len(seen))

    async def live(self, site: str, page_key: str, groups: Iterable[str] = ()) -> LivePage | None:
        """The whole page; None: these groups cannot find it. Raises: PageChanging, ElasticsearchDown."""
        return await live_page(self._es, site, page_key, groups)

    async def pages(
        self,
        site: str,
        *,
        groups: Iterable[str] | None = (),
        after: str = "",
        limit: int = LISTED,
        lang: str | None = None,
        described: bool = False,
        path: str | None = None,
        labels: Mapping[str, Iterable[str]] = NO_LABELS,
    ) -> PageList:
        """The pages that these groups may read, in the order of their keys; None: all.

        Args:
            after: `next` of the previous list.
            lang: only pages in this language.
            described: with their descriptions.
            path: only pages whose address has this path (`path_of`), of those written since addresses are indexed.
            labels: only pages that have, of each key, one of the values.

        Raises:
            ElasticsearchDown.
        """
        # The first chunk of each field: every page has one. Those before the content have the page's own title and
        # address, while chunks of attachments in the content have others.
        first: list[dict[str, Any]] = [{"term": {"kind": "chunk"}}, {"term": {"ord": 0}}]
        first += [] if groups is None else [visible_to(groups)]
        first += [{"range": {"page_key": {"gt": after}}}] if after else []
        first += [{"term": {"lang": lang}}] if lang else []
        first += [{"term": {"path": path}}] if path is not None else []
        first += labelled(labels)
        answer = await answer_of(
            self._es,
            f"listing pages of site {site}",
            index=alias(site),
            query={"bool": {"filter": first}},
            sort=["page_key"],
            size=(limit + 1) * len(FIELDS),
            source_includes=["page_key", "field", *LISTED_FIELDS, "labels", *(["text"] if described else [])],
            track_total_hits=False,
        )
        chunks = [hit["_source"] for hit in answer["hits"]["hits"]]
        grouped = [(key, list(found)) for key, found in groupby(chunks, key=lambda chunk: str(chunk["page_key"]))]
        shown = grouped[:limit]
        return PageList(
            pages=tuple(_listed(found) for _, found in shown),
            next=shown[-1][0] if len(grouped) > limit else None,
        )

    async def beginnings(self, site: str, lang: str) -> list[PageText]:
        """How pages for everybody begin, in this language: those first whose titles say that they answer questions.

        Raises: ElasticsearchDown.
        """
        only: list[dict[str, Any]] = [{"term": {"kind": "chunk"}}, {"term": {"field": "content"}}, {"term": {"ord": 0}}]
        filters = [*only, {"term": {"lang": lang}}, visible_to(())]
        answer = await answer_of(
            self._es,
            f"reading the beginnings of pages of site {site}",
            index=alias(site),
            query={"bool": {"filter": filters, "should": [{"match": {"title": QUESTIONS}}]}},
            sort=["_score", "page_key"],
            size=BEGINNINGS,
            source_includes=list(PageText.__dataclass_fields__),
            track_total_hits=False,
        )
        return [PageText(**hit["_source"]) for hit in answer["hits"]["hits"]]

    async def readable(self, site: str, page_ids: Collection[str], groups: Iterable[str]) -> frozenset[PageName]:
        """The pages that these groups can find, with their languages. Raises: ElasticsearchDown."""
        found: set[PageName] = set()
        visible = visible_to(groups)
        for some in chunked(sorted(page_ids), IDS):
            answer = await answer_of(
                self._es,
                f"looking up pages of site {site}",
                index=alias(site),
                query={"bool": {"filter": [{"term": {"kind": "chunk"}}, {"terms": {"page_id": some}}, visible]}},
                size=0,
                aggregations={"keys": {"terms": {"field": "page_key", "size": MAX_KEYS}}},
            )
            keys = (parse_page_key(bucket["key"]) for bucket in buckets_of(answer, "keys"))
            found |= {(key.page_id, key.lang) for key in keys}
        return frozenset(found)

    async def labels(self, site: str, groups: Iterable[str] = ()) -> LabelList:
        """The labels of the pages that these groups may read, those of the most pages. Raises: ElasticsearchDown."""
        firsts = [{"term": {"kind": "chunk"}}, {"term": {"ord": 0}}, visible_to(groups)]
        pages = {"pages": {"cardinality": {"field": "page_key"}}}  # a page has up to five first chunks
        answer = await answer_of(
            self._es,
            f"counting labels of site {site}",
            index=alias(site),
            query={"bool": {"filter": firsts}},
            aggs={"labels": {"terms": {"field": "labels", "size": LABELS}, "aggs": pages}},
            size=0,
        )
        more = answer.get("aggregations", {}).get("labels", {}).get("sum_other_doc_count", 0)
        counted = [(each["key"].partition(":"), each["pages"]["value"]) for each in buckets_of(answer, "labels")]
        labels = [LabelCount(key=key, value=value, pages=pages) for (key, _, value), pages in counted]
        labels.sort(key=lambda label: (label.key, -label.pages, label.value))
        return LabelList(labels=tuple(labels), more=more > 0)

    async def at(self, site: str, address: str, *, groups: Iterable[str] | None = ()) -> list[ListedPage]:
        """The pages with this address, in all languages; usually one.

        Reads through all pages where some were written before the index knew their addresses.

        Raises:
            ElasticsearchDown.
        """
        allowed = None if groups is None else list(groups)
        found = await self._at(site, address, allowed, path_of(address))
        return found or (await self._at(site, address, allowed) if await self._has_unplaced(site) else [])

    async def _at(self, site: str, address: str, groups: list[str] | None, path: str | None = None) -> list[ListedPage]:
        found: list[ListedPage] = []
        after: str | None = ""
        while after is not None:
            some = await self.pages(site, groups=groups, after=after, path=path)
            found += [page for page in some.pages if same_address(page.url, address)]
            after = some.next
        return found

    async def _has_unplaced(self, site: str) -> bool:
        """Whether a page has no `path`."""
        firsts = [{"term": {"kind": "chunk"}}, {"term": {"ord": 0}}]
        answer = await answer_of(
            self._es,
            f"looking for pages of site {site} without a path",
            index=alias(site),
            query={"bool": {"filter": firsts, "must_not": {"exists": {"field": "path"}}}},
            size=0,
            track_total_hits=1,
            terminate_after=1,
        )
        return bool(answer["hits"]["total"]["value"])


def _listed(chunks: Sequence[dict[str, Any]]) -> ListedPage:
    chunk = min(chunks, key=lambda chunk: FIELDS.index(chunk["field"]))
    said = next((chunk.get("text", "") for chunk in chunks if chunk["field"] == "description"), "")
    return ListedPage(
        **{name: chunk[name] for name in LISTED_FIELDS}, description=said, labels=labels_of(chunk.get("labels", ()))
    )
