"""Searches, also of indexes that do not exist yet. Long results are read in batches, each after the last hit of the
previous one.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, cast

from elasticsearch import AsyncElasticsearch, NotFoundError

from adapters.elastic.client import ElasticsearchDown, explained

KEEP_ALIVE = "2m"  # of a point in time, between two batches

Hit = dict[str, Any]


@dataclass
class PointInTime:
    """An index at one point in time. Each answer may bring a new id."""

    id: str


async def answer_of(es: AsyncElasticsearch, doing: str, **search: Any) -> dict[str, Any]:
    """The answer to a search; without hits and buckets if the index does not exist (yet).

    Args:
        doing: the action, for errors.
        search: arguments of `AsyncElasticsearch.search`.

    Raises:
        ElasticsearchDown.
    """
    with explained(doing):
        try:
            return cast("dict[str, Any]", await es.search(**search))
        except NotFoundError:
            return {"hits": {"hits": [], "total": {"value": 0}}}


async def documents(
    es: AsyncElasticsearch, doing: str, index: str, ids: Iterable[str], fields: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """The documents with these ids, read in real time; missing ones are left out. Raises: ElasticsearchDown."""
    if not (wanted := list(ids)):
        return {}
    with explained(doing):
        try:
            answer = await es.mget(index=index, ids=wanted, source_includes=fields)
        except NotFoundError:
            return {}
    return {doc["_id"]: doc["_source"] for doc in answer["docs"] if doc.get("found")}


def buckets_of(answer: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """The buckets of an aggregation."""
    found: list[dict[str, Any]] = answer.get("aggregations", {}).get(name, {}).get("buckets", [])
    return found


async def batches(
    es: AsyncElasticsearch,
    doing: str,
    size: int,
    *,
    absent: Exception | None,
    most: int | None = None,
    point: PointInTime | None = None,
    **search: Any,
) -> AsyncGenerator[list[Hit], None]:
    """The hits of a search, in batches of `size`, none of them empty.

    Args:
        doing: the action, for errors.
        absent: raised if the index does not exist (any more); None: then there are no hits.
        most: the maximum of hits.
        point: read at this point in time, in the order of the shards, without sorting; replaces `index` and `sort`.
        search: arguments of `AsyncElasticsearch.search`. Its `sort` must be unique for each hit.

    Raises:
        absent. ElasticsearchDown.
    """
    read = 0
    after: list[Any] | None = None
    while most is None or read < most:
        wanted = size if most is None else min(size, most - read)
        if point is not None:
            search |= {"pit": {"id": point.id, "keep_alive": KEEP_ALIVE}, "sort": [{"_shard_doc": "asc"}]}
        with explained(doing):
            try:
                answer = await es.search(search_after=after, size=wanted, **search)
            except NotFoundError:
                if absent is None:
                    return
                raise absent from None
        if point is not None:
            point.id = answer.get("pit_id", point.id)
        hits: list[Hit] = answer.get("hits", {}).get("hits", [])
        if hits:
            yield hits
        if len(hits) < wanted:
            return
        read, after = read + len(hits), hits[-1]["sort"]


async def sources(batches: AsyncGenerator[list[Hit], None]) -> AsyncGenerator[Any, None]:
    """The documents of all hits."""
    async with aclosing(batches):
        async for hits in batches:
            for hit in hits:
                yield hit["_source"]


@asynccontextmanager
async def point_in_time(es: AsyncElasticsearch, index: str, *, absent: Exception) -> AsyncIterator[PointInTime]:
    """Open a point in time, with everything that was written until now.

    Raises:
        absent: there is no such index. ElasticsearchDown.
    """
    with explained(f"opening {index}"):
        try:
            await es.indices.refresh(index=index)
            opened = await es.open_point_in_time(index=index, keep_alive=KEEP_ALIVE)
        except NotFoundError:
            raise absent from None
    point = PointInTime(opened["id"])
    try:
        yield point
    finally:
        with suppress(ElasticsearchDown), explained(f"closing {index}"):  # it expires anyway
            await es.options(ignore_status=404).close_point_in_time(id=point.id)
