"""Pages in the live index, for operators and editors: their chunks, ids and addresses, or a whole page of one
revision.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from elasticsearch import AsyncElasticsearch
from more_itertools import chunked

from adapters.elastic.reading import answer_of, batches, buckets_of, sources
from adapters.elastic.search import labelled, visible_to
from pipelines.query.extractive.suggestions import PageText
from pipelines.query.log.readable import PageName
from pipelines.runtime.errors import Retryable
from pipelines.runtime.indexes import alias
from schemas.head import Head
from schemas.http import IndexedChunk, IndexedPage, LabelCount, LabelList, ListedPage, LivePage, LiveSection, PageList
from schemas.keys import parse_page_key, path_of, same_address
from schemas.labels import NO_LABELS, labels_of
from schemas.page import FIELDS, FieldName, PageStamp

BATCH = 500  # chunks a search
TRIES, PAUSE = 5, 0.2  # a write is visible within a second (refresh_interval)


class PageChanging(Retryable):
    """The page is being written at this moment."""

    code = "page-changing"


async def live_page(es: AsyncElasticsearch, site: str, page_key: str, groups: Iterable[str]) -> LivePage | None:
    """The page; None: there is none that these groups can find.

    Raises:
        PageChanging, ElasticsearchDown.
    """
    allowed = list(groups)
    for _ in range(TRIES):
        head, chunks = await _read(es, site, page_key, allowed)
        if head is None or head.state == "deleted" or not chunks:
            return None
        if _complete(head, chunks):
            return _page(head, chunks)
        await asyncio.sleep(PAUSE)
    raise PageChanging(f"{page_key} is being written; try again")


async def _read(
    es: AsyncElasticsearch, site: str, page_key: str, groups: Sequence[str]
) -> tuple[Head | None, list[dict[str, Any]]]:
    """The page's head, and the chunks that these groups may read, in order."""
    found = batches(
        es,
        f"reading {page_key}",
        BATCH,
        absent=None,
        index=alias(site),
        query={"bool": {"filter": [{"term": {"page_key": page_key}}, visible_to(groups)]}},
        sort=[{"kind": "desc"}, {"field": "asc"}, {"ord": "asc"}],  # the head, which has no groups, comes first
        source_includes=["kind", "head", "field", "ord", "text", "title", "url", "revision", "labels", "published_at"],
        track_total_hits=False,
    )
    documents = [source async for source in sources(found)]
    heads = [Head.stored(each["head"]) for each in documents if each["kind"] == "head"]
    chunks = [each for each in documents if each["kind"] == "chunk"]
    chunks.sort(key=lambda chunk: (FIELDS.index(chunk["field"]), chunk["ord"]))
    return (heads[0] if heads else None), chunks


def _complete(head: Head, chunks: Sequence[dict[str, Any]]) -> bool:
    """Whether these are all chunks of the head's change: a refresh may show a page of which a part is written."""
    counts = {field: count for field, count in head.counts.items() if count}
    return Counter(chunk["field"] for chunk in chunks) == counts and {chunk["revision"] for chunk in chunks} == {
        head.change.revision
    }


def _page(head: Head, chunks: Sequence[dict[str, Any]]) -> LivePage:
    own = chunks[0]["title"], chunks[0]["url"]  # chunks of attachments have others, and stand behind it
    texts: dict[FieldName, str] = {
        field: "".join(chunk["text"] for chunk in some)
        for field, some in groupby(chunks, key=lambda chunk: chunk["field"])
        if field != "content"
    }
    content = [chunk for chunk in chunks if chunk["field"] == "content"]
    sections = [
        LiveSection(
            title="" if place == own else place[0],
            url="" if place == own else place[1],
            text="".join(chunk["text"] for chunk in some),
        )
        for place, some in groupby(content, key=lambda chunk: (chunk["title"], chunk["url"]))
    ]
    change = head.change
    return LivePage(
        page_id=change.page_id,
        lang=change.lang,
        title=own[0],
        url=own[1],
        revision=change.revision,
        changed_at=change.accepted_at,
        indexed_at=head.settled_at,
        fields=texts,
        sections=tuple(sections),
        labels=labels_of(chunks[0].get("labels", ())),
        published_at=PageStamp.stored({"published_at": chunks[0].get("published_at")}).published_at,
    )


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
