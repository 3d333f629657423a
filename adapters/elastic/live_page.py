"""A whole page as the live index has it, of one revision and never half written."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from elasticsearch import AsyncElasticsearch

from adapters.elastic.reading import batches, sources
from adapters.elastic.search import visible_to
from pipelines.runtime.errors import Retryable
from pipelines.runtime.indexes import alias
from schemas.head import Head
from schemas.http import LivePage, LiveSection
from schemas.labels import labels_of
from schemas.page import FIELDS, FieldName
from schemas.page_metadata import PageStamp

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
